import { inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from '../schema/columns.ts';
import { eventDecisions } from '../schema/knowledge.ts';

/** What a person has decided about a corporate event, by `market.corporate_events.event_id`. */
export interface EventDecision {
  readonly eventId: string;
  /** Shares after the event for shares before it; null: the event is ignored. */
  readonly ratio: { readonly new: number; readonly old: number } | null;
  readonly decidedBy: string;
  /** When, ISO 8601 with all digits, so that texts compare as moments. */
  readonly decidedAt: string;
}

/** All decisions, in no order. */
export async function readDecisions(db: NodePgDatabase): Promise<EventDecision[]> {
  const { event_id: eventId, ratio_new: after, ratio_old: before, decided_by: decidedBy } = eventDecisions;
  const rows = await db
    .select({ eventId, after, before, decidedBy, decidedAt: isoText(sql`${eventDecisions.decided_at}`) })
    .from(eventDecisions);
  return rows.map(({ after: sharesAfter, before: sharesBefore, ...decision }) => ({
    ...decision,
    ratio: sharesAfter === null || sharesBefore === null ? null : { new: sharesAfter, old: sharesBefore },
  }));
}

/** Stores a decision about events; it replaces earlier ones about them. */
export async function writeDecision(
  db: NodePgDatabase,
  eventIds: readonly string[],
  { ratio, decidedBy }: Pick<EventDecision, 'ratio' | 'decidedBy'>,
): Promise<void> {
  const decided = {
    ratio_new: ratio?.new ?? null,
    ratio_old: ratio?.old ?? null,
    decided_by: decidedBy,
    decided_at: sql`clock_timestamp()`,
  };
  await db
    .insert(eventDecisions)
    .values(eventIds.map((id) => ({ event_id: id, ...decided })))
    .onConflictDoUpdate({ target: eventDecisions.event_id, set: decided });
}

/** Deletes decisions. @returns false if there was none. */
export async function removeDecisions(db: NodePgDatabase, eventIds: readonly string[]): Promise<boolean> {
  const removed = await db.delete(eventDecisions).where(inArray(eventDecisions.event_id, [...eventIds]));
  return (removed.rowCount ?? 0) > 0;
}
