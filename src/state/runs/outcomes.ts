import { and, count, desc, eq, inArray, isNotNull, max, not, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { type CompletenessContext, tradingDayStatesIn } from '../coverage/completeness.ts';
import { isoText } from '../schema/columns.ts';
import { expectations } from '../schema/knowledge.ts';
import { sourceState } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { callsSource } from '../windows/read-windows.ts';
import { isOpen } from '../windows/transitions.ts';

// What the status, alerts, forecasts, comparisons and imports query about runs and windows.

/** What the source said, or else the failure of a window. */
const reasonText = sql<string | null>`coalesce(${windows.diagnostic}, ${windows.error})`;

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
      reason: sql<
        string | null
      >`(array_agg(coalesce(${windows.diagnostic}, ${windows.error}) order by ${windows.id} desc))[1]`,
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
  const { drizzle } = context.db;
  const { rows: pairs } = await drizzle.execute<Pair & DayRange & Record<string, unknown>>(sql`
    select w.operation, w.exchange, min(w.from_date)::text as "from", max(w.to_date)::text as "to"
      from ${windows} w join ${runs} r on r.id = w.run_id join ${expectations} e on e.operation = w.operation
     where r.id = any(${sql.param(runIds)}::bigint[])
       and r.kind in ('backfill', 'nightly', 'gap_fill')
       and w.state in ('loaded', 'empty')
       and not e.is_empty_normal
       and e.days <> 'none'
     group by w.operation, w.exchange`);
  const days = pairs.flatMap((pair) => [pair.from, pair.to]).sort();
  const [from, to] = [days[0], days.at(-1)];
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

/** So many of the newest runs that call the source are looked at, besides those that are open. */
const RECENT_RUNS = 10;

/** The newest run that calls the source, and whether it is open; null if there is none. */
export async function readNewestRequestingRun(
  db: NodePgDatabase,
): Promise<{ readonly runId: number; readonly isOpen: boolean } | null> {
  const [run] = await db
    .select({ runId: runs.id, isOpen: sql<boolean>`${runs.state} in ('running', 'paused')` })
    .from(runs)
    .where(callsSource())
    .orderBy(desc(runs.id))
    .limit(1);
  return run ?? null;
}

/** What failed in a run of the newest night. */
export interface NightFailure {
  readonly runId: number;
  /** When the run ended, ISO 8601. */
  readonly since: string;
  /** Null, as the exchange, if no window failed, but the run as a whole. */
  readonly operation: string | null;
  readonly exchange: string | null;
  readonly reason: string;
  /** True if a later run has loaded something of this operation and exchange. */
  readonly isLoadedSince: boolean;
}

/** What failed in the runs of the newest night, by operation and exchange, the newest run and the most windows first. */
export async function listNightFailures(db: NodePgDatabase): Promise<readonly NightFailure[]> {
  const result = await db.execute<NightFailure & Record<string, unknown>>(sql`
    select r.id::int as "runId", ${isoText(sql`r.finished_at`)} as since, w.operation, w.exchange,
           coalesce(mode() within group (order by coalesce(w.diagnostic, w.error)), r.error, 'no reason is known') as reason,
           exists (
             select from ${runs} m join ${windows} n on n.run_id = m.id
              where m.id > r.id
                and n.operation = w.operation
                and n.exchange = w.exchange
                and n.state in ('loaded', 'empty')) as "isLoadedSince"
      from ${runs} r left join ${windows} w on w.run_id = r.id and w.state in ('failed', 'blocked')
     where r.kind = 'nightly'
       and r.state = 'failed'
       and r.to_date = (select max(to_date) from ${runs} where kind = 'nightly')
     group by r.id, w.operation, w.exchange
     order by r.id desc, count(w.id) desc, w.operation, w.exchange`);
  return result.rows;
}

/** The newest run with windows that were blocked because the source refuses a key; null if there is none. */
export async function readRunStoppedByKey(db: NodePgDatabase, keyHash: string): Promise<number | null> {
  const newest = db
    .select({ id: runs.id })
    .from(runs)
    .where(callsSource())
    .orderBy(desc(runs.id))
    .limit(RECENT_RUNS);
  const [run] = await db
    .select({ runId: max(windows.run_id) })
    .from(windows)
    .where(and(inArray(windows.run_id, newest), isBlockedByKey(db, keyHash)));
  return run?.runId ?? null;
}
