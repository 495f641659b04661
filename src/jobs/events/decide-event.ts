import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { INTEGER_RATIO } from '../../extract/corporate-actions/listed-events.ts';
import { reduceRatio, type ShareRatio } from '../../extract/corporate-actions/purpose.ts';
import { idsOfEvent, listEvents, readUndecided, type StoredEvent } from '../../load/corporate-events.ts';
import { removeDecisions, writeDecision } from '../../state/events/decisions.ts';
import type { Context } from '../context.ts';
import { updateDerived } from './update-derived.ts';

/** The share ratio of a price factor such as `1:2`, which halves prices: two shares for one. Null if it is invalid. */
export function ratioOfFactor(text: string): ShareRatio | null {
  const match = INTEGER_RATIO.exec(text.trim());
  const [a, b] = [Number(match?.[1]), Number(match?.[2])];
  return a > 0 && b > 0 ? { new: b, old: a } : null;
}

/** An event as it is after a decision, with the rows that it has on the other exchange and under other symbols. */
type DecidedEvent = StoredEvent & { readonly others: readonly StoredEvent[] };

/**
 * Stores a person's decision about an event, or removes it, and brings what follows from it up to date. It is decided
 * on both exchanges together: it is one event of one share.
 *
 * @param decision the share ratio to apply; null: the event is ignored; `reset`: the decision is removed.
 * @returns the event as it is afterwards; null if there is no event with this id.
 * @throws PipelineError `usage` if there is no decision to remove.
 */
export async function decideEvent(
  context: Context,
  eventId: string,
  decision: ShareRatio | null | 'reset',
): Promise<DecidedEvent | null> {
  const { db } = context;
  const ids = await idsOfEvent(db.pool, eventId);
  if (ids.length === 0) return null;
  if (decision === 'reset') {
    if (!(await removeDecisions(db.drizzle, ids))) throw usageError(`nothing was decided about ${eventId}`);
  } else {
    const ratio = decision === null ? null : reduceRatio(decision.new, decision.old);
    await writeDecision(db.drizzle, ids, { ratio, decidedBy: requesterName() });
  }
  await updateDerived(context);
  const { events } = await listEvents(db.pool, { ids }, ids.length);
  const event = events.find(({ id }) => id === eventId);
  return event === undefined ? null : { ...event, others: events.filter((other) => other !== event) };
}

/**
 * Lists the undecided events that move the price by less than so many percent, which a bulk decision is about.
 *
 * @returns the ids of the rows of each; and how many events move it by as much or more, and of how many that is not known.
 */
export async function smallEvents({ db }: Pick<Context, 'db'>, below: number) {
  const undecided = await readUndecided(db.pool);
  const small = undecided.filter(({ effect }) => effect !== null && effect < below);
  const unknown = undecided.filter(({ effect }) => effect === null).length;
  return { small: small.map(({ ids }) => ids), unknown, large: undecided.length - small.length - unknown };
}

/** Stores that a person ignores events, and brings what follows from it up to date. */
export async function ignoreEvents(context: Context, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await writeDecision(context.db.drizzle, ids, { ratio: null, decidedBy: requesterName() });
  await updateDerived(context);
}
