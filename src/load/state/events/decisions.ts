import { eq, sql } from 'drizzle-orm';
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
  const found = await db
    .select({ eventId, after, before, decidedBy, decidedAt: isoText(sql`${eventDecisions.decided_at}`) })
    .from(eventDecisions);
  return found.map(({ after: shares, before: held, ...decision }) => ({
    ...decision,
    ratio: shares === null || held === null ? null : { new: shares, old: held },
  }));
}

/** Stores a decision; it replaces an earlier one about the same event. */
export async function writeDecision(
  db: NodePgDatabase,
  decision: Omit<EventDecision, 'decidedAt'>,
): Promise<void> {
  const decided = {
    ratio_new: decision.ratio?.new ?? null,
    ratio_old: decision.ratio?.old ?? null,
    decided_by: decision.decidedBy,
    decided_at: sql`clock_timestamp()`,
  };
  await db
    .insert(eventDecisions)
    .values({ event_id: decision.eventId, ...decided })
    .onConflictDoUpdate({ target: eventDecisions.event_id, set: decided });
}

/** Deletes a decision. @returns false if there was none. */
export async function removeDecision(db: NodePgDatabase, eventId: string): Promise<boolean> {
  const removed = await db.delete(eventDecisions).where(eq(eventDecisions.event_id, eventId));
  return removed.rowCount === 1;
}
