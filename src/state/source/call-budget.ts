import { and, eq, isNotNull, lt, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoTime } from '../../core/days.ts';
import { type Preparing, statement } from '../../postgres/prepared.ts';
import { daysAgo } from '../schema/columns.ts';
import { callBudget } from '../schema/source-tables.ts';

// The call budget: one per access key and clock hour, for all workers on all machines. It is kept in Postgres with either
// queue backend, because a Redis that restarts empty would forget the calls that were made.

/** What a claim needs to know about the key and the hour's budget. Times are milliseconds since the epoch. */
export interface CallLimit {
  readonly keyHash: string;
  readonly now: number;
  /** Start of the clock hour. */
  readonly hour: number;
  readonly limit: number;
  /** How much of the limit a backfill may use; the rest is kept for nightly runs. */
  readonly backfillLimit: number;
  /** How much of the limit the windows of an earlier night may still use. */
  readonly leftoverLimit: number;
  /** While the source is down, a call may begin if the last one began before this moment. */
  readonly downCalledBefore: number;
  /** After this many failed calls in a row the source counts as down. */
  readonly openingFailures: number;
}

type Hour = Pick<CallLimit, 'keyHash' | 'hour'>;

/**
 * Counts one call in the hour, as a claim does (windows/claim-statement.ts); no row if the limit is used up or the source
 * has closed the hour.
 */
const countSingleCall = statement<{ keyHash: string; hour: string; limit: number }, Record<string, unknown>>`
  insert into ${callBudget} as budget (key_hash, hour, calls)
  select ${'keyHash'}::text, ${'hour'}::timestamptz, 1 where ${'limit'}::int > 0
  on conflict (key_hash, hour) do update set calls = budget.calls + 1
   where budget.calls < ${'limit'}::int and budget.refused_at is null`;

/**
 * Counts one call that belongs to no window, if the hour has one left.
 *
 * @returns false if it has none or the source has closed it; then the call must not be made.
 */
export async function takeCall(db: Preparing, callLimit: CallLimit): Promise<boolean> {
  const { keyHash, hour, limit } = callLimit;
  const { rowCount } = await countSingleCall(db, { keyHash, hour: isoTime(hour), limit });
  return rowCount === 1;
}

/** Counts one call less, because it was not made. */
export async function returnCall(db: NodePgDatabase, { keyHash, hour }: Hour): Promise<void> {
  await db
    .update(callBudget)
    .set({ calls: sql`${callBudget.calls} - 1` })
    .where(and(eq(callBudget.key_hash, keyHash), eq(callBudget.hour, isoTime(hour))));
}

/** Records that the source says the hour's calls are used up, whatever was counted: none is made in it any more. */
export async function closeHour(
  db: NodePgDatabase,
  { keyHash, hour, now }: Pick<CallLimit, 'keyHash' | 'hour' | 'now'>,
  diagnostic: string,
): Promise<void> {
  const closed = { refused_at: isoTime(now), diagnostic };
  await db
    .insert(callBudget)
    .values({ key_hash: keyHash, hour: isoTime(hour), calls: 0, ...closed })
    .onConflictDoUpdate({ target: [callBudget.key_hash, callBudget.hour], set: closed });
}

/** Opens the hours that the source closed: the next call shows whether it still refuses calls. */
export async function openHours(db: NodePgDatabase, keyHash: string): Promise<void> {
  await db
    .update(callBudget)
    .set({ refused_at: null, diagnostic: null })
    .where(and(eq(callBudget.key_hash, keyHash), isNotNull(callBudget.refused_at)));
}

interface HourState {
  readonly calls: number;
  /** The diagnostic with which the source closed the hour; null if it did not. */
  readonly closingDiagnostic: string | null;
}

/** How much of an hour's budget is used. */
export async function readHour(db: NodePgDatabase, { keyHash, hour }: Hour): Promise<HourState> {
  const rows = await db
    .select({ calls: callBudget.calls, refusedAt: callBudget.refused_at, diagnostic: callBudget.diagnostic })
    .from(callBudget)
    .where(and(eq(callBudget.key_hash, keyHash), eq(callBudget.hour, isoTime(hour))));
  const row = rows[0];
  return { calls: row?.calls ?? 0, closingDiagnostic: row?.refusedAt == null ? null : row.diagnostic };
}

/**
 * Deletes the counts of hours that began more than so many days ago.
 *
 * @param dryRun deletes nothing.
 * @returns how many hours.
 */
export async function pruneHours(db: NodePgDatabase, days: number, dryRun: boolean): Promise<number> {
  const isOld = lt(callBudget.hour, daysAgo(days));
  if (dryRun) return db.$count(callBudget, isOld);
  return (await db.delete(callBudget).where(isOld)).rowCount ?? 0;
}
