import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { INTEGER_RATIO } from '../../extract/corporate-actions/listed-events.ts';
import { ratioOf, type ShareRatio } from '../../extract/corporate-actions/purpose.ts';
import { listEvents, type StoredEvent } from '../../load/market/corporate-events.ts';
import { removeDecision, writeDecision } from '../../load/state/events/decisions.ts';
import type { Context } from '../context.ts';
import { updateCorporateEvents } from './update-events.ts';

/** The share ratio of a price factor such as `1:2`, which halves prices: two shares for one. Null if it is invalid. */
export function ratioOfFactor(text: string): ShareRatio | null {
  const found = INTEGER_RATIO.exec(text.trim());
  const [a, b] = [Number(found?.[1]), Number(found?.[2])];
  return a > 0 && b > 0 ? { new: b, old: a } : null;
}

/**
 * Stores a person's decision about an event, or removes it, and brings `market.corporate_events` up to date.
 *
 * @param decision the share ratio to apply; null: the event is ignored; `reset`: the decision is removed.
 * @param by who decides.
 * @returns the event as it is afterwards; null if there is no event with this id.
 * @throws PipelineError `usage` if there is no decision to remove.
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
