import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { ratioOf, type ShareRatio } from '../../extract/corporate-actions/purpose.ts';
import { WHOLE_RATIO } from '../../extract/corporate-actions/told.ts';
import { listEvents, type StoredEvent } from '../../load/market/corporate-events.ts';
import { removeDecision, writeDecision } from '../../load/state/event-decisions.ts';
import type { Context } from '../context.ts';
import { updateCorporateEvents } from './update-events.ts';

/** Shares after for shares before, of a factor of prices such as `1:2`, which halves them; null where it is none. */
export function ratioOfFactor(text: string): ShareRatio | null {
  const found = WHOLE_RATIO.exec(text.trim());
  const [a, b] = [Number(found?.[1]), Number(found?.[2])];
  return a > 0 && b > 0 ? { new: b, old: a } : null;
}

/**
 * Writes what a person has decided about an event, or takes it back, and brings `market.corporate_events` up to date.
 *
 * @param decision shares after for shares before; null: the event is ignored.
 * @param by who decides.
 * @returns the event as it is then; null where there is no event of this name.
 * @throws PipelineError `usage` when there is no decision to take back.
 */
export async function decideEvent(
  context: Context,
  eventId: string,
  decision: ShareRatio | null | 'reset',
  by = requesterName(),
): Promise<StoredEvent | null> {
  const { db } = context;
  const find = async () => (await listEvents(db.pool, { id: eventId }, 1)).events[0] ?? null;
  if ((await find()) === null) return null;
  if (decision === 'reset') {
    if (!(await removeDecision(db.drizzle, eventId)))
      throw usageError(`nothing was decided about ${eventId}`);
  } else {
    const ratio = decision === null ? null : ratioOf(decision.new, decision.old);
    await writeDecision(db.drizzle, { eventId, ratio, decidedBy: by });
  }
  await updateCorporateEvents(context);
  return find();
}
