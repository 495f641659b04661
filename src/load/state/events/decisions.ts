import { eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { eventDecisions } from '../schema/knowledge.ts';

/** What a person has decided about a corporate event, by `market.corporate_events.event_id`. */
export interface EventDecision {
  readonly eventId: string;
  /** Shares after the event for shares before it; null: the event is ignored. */
  readonly ratio: { readonly new: number; readonly old: number } | null;
  readonly decidedBy: string;
}

/** All decisions, in no order. */
export async function readDecisions(db: NodePgDatabase): Promise<EventDecision[]> {
  const found = await db.select().from(eventDecisions);
  return found.map(({ event_id: eventId, ratio_new: after, ratio_old: before, decided_by: decidedBy }) => ({
    eventId,
    ratio: after === null || before === null ? null : { new: after, old: before },
    decidedBy,
  }));
}

/** Stores a decision; it replaces an earlier one about the same event. */
export async function writeDecision(db: NodePgDatabase, decision: EventDecision): Promise<void> {
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
