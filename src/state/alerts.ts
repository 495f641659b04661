import { and, eq, gt, inArray, isNull, lt, lte, max, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Database } from '../postgres/database.ts';
import { lockUntilCommit, transaction } from '../postgres/transaction.ts';
import { daysAgo } from './schema/columns.ts';
import { alerts } from './schema/knowledge.ts';

/** Pause before the next try in seconds, doubling from this up to an hour. */
const FIRST_PAUSE_S = 30;
const LONGEST_PAUSE_S = 3_600;

/** An alert that could not be delivered for this long is not sent any more. */
const SENT_WITHIN = '1 day';

/** What an alert says may have changed if it is sent this long after it was raised. */
const LATE_AFTER = '2 minutes';

type RaisedAlert = Pick<typeof alerts.$inferInsert, 'kind' | 'subject' | 'message' | 'facts'>;

/**
 * Stores alerts in one transaction, so that they are sent together. Of one whose kind and subject were raised within
 * `repeatHours`, the repeats are counted.
 *
 * @returns those that are new.
 */
export function recordAlerts<One extends RaisedAlert>(
  database: Database,
  raised: readonly One[],
  repeatHours: (alert: One) => number,
): Promise<One[]> {
  // In one order, so that two workers cannot wait for each other.
  const ordered = raised.toSorted((a, b) => (a.subject < b.subject ? -1 : 1));
  return transaction(database, async (tx) => {
    const added: One[] = [];
    for (const alert of ordered) if (await recordAlert(tx, alert, repeatHours(alert))) added.push(alert);
    return added;
  });
}

async function recordAlert(
  tx: NodePgDatabase,
  { kind, subject, message, facts }: RaisedAlert,
  repeatHours: number,
): Promise<boolean> {
  // Two workers that see the same failure at the same moment make one alert.
  await lockUntilCommit(tx, `eod:alert:${kind}:${subject}`);
  const newest = tx
    .select({ id: max(alerts.id) })
    .from(alerts)
    .where(and(eq(alerts.kind, kind), eq(alerts.subject, subject)));
  const repeated = await tx
    .update(alerts)
    .set({ repeated: sql`${alerts.repeated} + 1` })
    .where(
      and(
        inArray(alerts.id, newest),
        gt(alerts.raised_at, sql`now() - make_interval(hours => ${repeatHours})`),
      ),
    );
  if (repeated.rowCount === 1) return false;
  await tx.insert(alerts).values({ kind, subject, message, facts });
  return true;
}

/**
 * Claims alerts of these kinds that were not delivered yet and are due. The time of the next try is set before this one
 * is made, so that no two workers send the same alert.
 *
 * @param limit at most so many.
 */
export function claimDueAlerts(db: NodePgDatabase, kinds: readonly string[], limit: number) {
  const due = db
    .select({ id: alerts.id })
    .from(alerts)
    .where(
      and(
        inArray(alerts.kind, [...kinds]),
        isNull(alerts.delivered_at),
        lte(alerts.next_attempt_at, sql`now()`),
        gt(alerts.raised_at, sql`now() - ${SENT_WITHIN}::interval`),
      ),
    )
    .orderBy(alerts.id)
    .limit(limit)
    .for('update', { skipLocked: true });
  return db
    .update(alerts)
    .set({
      attempts: sql`${alerts.attempts} + 1`,
      next_attempt_at: sql`now() + make_interval(secs =>
        least(${LONGEST_PAUSE_S}::float8, ${FIRST_PAUSE_S}::float8 * power(2, least(${alerts.attempts}, 20))))`,
    })
    .where(inArray(alerts.id, due))
    .returning({
      id: alerts.id,
      kind: alerts.kind,
      subject: alerts.subject,
      message: alerts.message,
      facts: alerts.facts,
      raisedAt: alerts.raised_at,
      isLate: sql<boolean>`now() - ${alerts.raised_at} > ${LATE_AFTER}::interval`,
    });
}

/** Records whether alerts were delivered. @param problem why it was not; null if it was. */
export async function noteDelivery(
  db: NodePgDatabase,
  ids: readonly number[],
  problem: string | null,
): Promise<void> {
  const delivered_at = problem === null ? sql`now()` : undefined;
  await db
    .update(alerts)
    .set({ error: problem, delivered_at })
    .where(inArray(alerts.id, [...ids]));
}

/** The subjects of alerts of these kinds that were raised within this many days. */
export async function listAlertSubjects(
  db: NodePgDatabase,
  kinds: readonly string[],
  days: number,
): Promise<ReadonlySet<string>> {
  const rows = await db
    .select({ subject: alerts.subject })
    .from(alerts)
    .where(and(inArray(alerts.kind, [...kinds]), gt(alerts.raised_at, daysAgo(days))));
  return new Set(rows.map(({ subject }) => subject));
}

/**
 * Deletes alerts that were raised more than so many days ago, delivered or not: none is sent for longer than a day.
 *
 * @param dryRun deletes nothing.
 * @returns how many.
 */
export async function pruneAlerts(db: NodePgDatabase, days: number, dryRun: boolean): Promise<number> {
  const isOld = lt(alerts.raised_at, daysAgo(days));
  if (dryRun) return db.$count(alerts, isOld);
  return (await db.delete(alerts).where(isOld)).rowCount ?? 0;
}
