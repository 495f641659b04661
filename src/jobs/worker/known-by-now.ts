import { today } from '../../core/clock.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { ClaimedWindow } from '../../state/windows/claim.ts';
import { isOvertaken } from '../../state/windows/overtaken.ts';
import type { WorkContext } from '../context.ts';
import { dependsOnDays, listEntries } from '../responses/response-coverage.ts';

/** True if each entry of a window is covered by now, or a later night will request it. */
export async function isKnownByNow(
  { db, calendar, clock, config }: WorkContext,
  window: ClaimedWindow,
): Promise<boolean> {
  const operation = operationNamed(window.operation);
  const tradingDays = calendar.tradingDays(window.exchange, window.from, window.to);
  const entries = listEntries(operation, window, tradingDays, today(clock, config.EOD_TIMEZONE));
  return isOvertaken(db.drizzle, window.id, entries, dependsOnDays(operation, window));
}
