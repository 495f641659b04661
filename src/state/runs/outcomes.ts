import { and, count, eq, inArray, isNotNull, max, min, ne, not, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { type CompletenessContext, tradingDayStatesIn } from '../coverage/completeness.ts';
import { isoText } from '../schema/columns.ts';
import { expectations } from '../schema/knowledge.ts';
import { sourceState } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { isOpen } from '../windows/transitions.ts';

// What the status, alerts, forecasts, comparisons and imports query about runs and windows.

/** What the source said, or else the failure of a window. */
export const reasonText = sql<string | null>`coalesce(${windows.diagnostic}, ${windows.error})`;

/** The condition that a window was blocked because the source refuses this key: its diagnostic is that of the key. */
function isBlockedByKey(db: NodePgDatabase, keyHash: string) {
  const refusal = db
    .select({ diagnostic: sourceState.diagnostic })
    .from(sourceState)
    .where(and(eq(sourceState.key_hash, keyHash), eq(sourceState.diagnostic, reasonText)));
  return sql`(${windows.state} = 'blocked' and exists ${refusal})`;
}

/** The diagnostic with which the source refused a key and stopped a run; null if it did not. */
export async function readRunRefusal(
  db: NodePgDatabase,
  runId: number,
  keyHash: string,
): Promise<string | null> {
  const [window] = await db
    .select({ line: reasonText })
    .from(windows)
    .where(and(eq(windows.run_id, runId), isBlockedByKey(db, keyHash)))
    .limit(1);
  return window?.line ?? null;
}

/**
 * How many windows of a run failed, by operation and exchange, with the newest reason, and when the first and the last of
 * them did.
 *
 * @param keyHash failures because this key was refused are left out; null: none are.
 */
export async function listRunFailures(db: NodePgDatabase, runId: number, keyHash: string | null) {
  const { operation, exchange } = windows;
  return db
    .select({
      what: sql<string>`${operation} || ' ' || ${exchange}`,
      windows: count(),
      reason: sql<string | null>`(array_agg(${reasonText} order by ${windows.id} desc))[1]`,
      first: isoText(sql`min(${windows.finished_at})`),
      last: isoText(sql`max(${windows.finished_at})`),
    })
    .from(windows)
    .where(
      and(
        eq(windows.run_id, runId),
        inArray(windows.state, ['failed', 'blocked']),
        keyHash === null ? undefined : not(isBlockedByKey(db, keyHash)),
      ),
    )
    .groupBy(operation, exchange)
    .orderBy(operation, exchange);
}

/** The files that an import has loaded in full: their paths by the SHA-256 hash of their content. */
export async function readImportedFiles(db: NodePgDatabase): Promise<Map<string, string[]>> {
  const rows = await db
    .selectDistinct({ hash: sql<string>`${windows.source_hash}`, path: sql<string>`${windows.source_file}` })
    .from(windows)
    .innerJoin(runs, and(eq(runs.id, windows.run_id), eq(runs.kind, 'import')))
    .where(isNotNull(windows.source_hash))
    .groupBy(windows.source_hash, windows.source_file, windows.run_id)
    .having(sql`bool_and(${windows.state} in ('loaded', 'empty'))`);
  const groups = groupBy(rows, ({ hash }) => hash);
  return new Map([...groups].map(([hash, files]) => [hash, files.map(({ path }) => path)]));
}

interface EmptyTradingDays extends Pair, DayRange {
  readonly runId: number;
  readonly sessions: number;
  /** How many of them the source has not published, although they are due. */
  readonly notPublished: number;
}

/**
 * The trading days to which these runs got a response without records though each should have some, by operation and
 * exchange; none that has records by now. Those that are due and not published are among them, but for nights, which
 * request them again.
 */
export async function listEmptyTradingDays(
  context: CompletenessContext,
  runIds: readonly number[],
): Promise<readonly EmptyTradingDays[]> {
  const { operation, exchange, state, from_date, to_date } = windows;
  const { drizzle } = context.db;
  const pairs = await drizzle
    .select({ operation, exchange, from: min(from_date), to: max(to_date) })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .innerJoin(expectations, eq(expectations.operation, operation))
    .where(
      and(
        inArray(runs.id, [...runIds]),
        inArray(runs.kind, ['backfill', 'nightly', 'gap_fill']),
        inArray(state, ['loaded', 'empty']),
        not(expectations.is_empty_normal),
        ne(expectations.days, 'none'),
      ),
    )
    .groupBy(operation, exchange);
  const from = pairs.map((pair) => pair.from ?? '').sort()[0];
  const to = pairs
    .map((pair) => pair.to ?? '')
    .sort()
    .at(-1);
  if (from === undefined || to === undefined) return [];
  const scope = { expected: pairs, others: false, from, to };
  const result = await drizzle.execute<EmptyTradingDays & Record<string, unknown>>(sql`
    select r.id::int as "runId", s.operation, s.exchange, min(s.day)::text as "from", max(s.day)::text as "to",
           count(*)::int as sessions, count(*) filter (where s.reason = 'not_published')::int as "notPublished"
      from ${tradingDayStatesIn(context, scope)} s cross join ${runs} r
     where r.id = any(${sql.param(runIds)}::bigint[])
       and r.kind in ('backfill', 'nightly', 'gap_fill')
       and (s.reason = 'empty' or (s.reason = 'not_published' and s.state = 'missing' and r.kind <> 'nightly'))
       and exists (
         select from ${windows} w
          where w.run_id = r.id
            and w.operation = s.operation
            and w.exchange = s.exchange
            and w.state in ('loaded', 'empty')
            and s.day between w.from_date and w.to_date
       )
     group by 1, 2, 3 order by 1, 2, 3`);
  return result.rows;
}

/** When the last completed run of each kind ended, in seconds since the epoch. */
export function readLastCompletedRuns(db: NodePgDatabase) {
  return db
    .select({
      kind: runs.kind,
      endedAt: sql`extract(epoch from max(${runs.finished_at}))`.mapWith(Number),
    })
    .from(runs)
    .where(eq(runs.state, 'completed'))
    .groupBy(runs.kind);
}

/** How many windows have not ended, by state. */
export function countOpenWindowsByState(db: NodePgDatabase) {
  return db
    .select({ state: windows.state, windows: count() })
    .from(windows)
    .where(isOpen())
    .groupBy(windows.state);
}

/**
 * A day of nightly runs, with how many of its runs are open or completed; null if there were none.
 *
 * @param day by default the newest.
 */
export async function readNight(db: NodePgDatabase, day?: Day) {
  const newest = db
    .select({ day: max(runs.to_date) })
    .from(runs)
    .where(eq(runs.kind, 'nightly'));
  const [night] = await db
    .select({
      day: runs.to_date,
      open: sql`count(*) filter (where ${runs.state} in ('running', 'paused'))`.mapWith(Number),
      completed: sql`count(*) filter (where ${runs.state} = 'completed')`.mapWith(Number),
    })
    .from(runs)
    .where(and(eq(runs.kind, 'nightly'), eq(runs.to_date, day ?? newest)))
    .groupBy(runs.to_date);
  return night ?? null;
}
