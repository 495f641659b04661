import {
  and,
  between,
  count,
  desc,
  eq,
  gte,
  inArray,
  isNotNull,
  isNull,
  lte,
  max,
  ne,
  not,
  notExists,
  notInArray,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { Day, DayRange } from '../../../core/days.ts';
import { EXCHANGES, expectedVariants } from '../../../operations/operation.ts';
import { operations } from '../../../operations/registry.ts';
import { isoText } from '../schema/columns.ts';
import { sessions } from '../schema/knowledge.ts';
import { accessKeys, answers } from '../schema/source.ts';
import { coverage, loads, rejects, runs, windows, withdrawals } from '../schema/work.ts';
import { isOpen } from '../windows/transitions.ts';
import type { RunState } from './request.ts';

// What the status, alerts, forecasts, comparisons and imports ask about runs and windows.

/** When a run ended, or the time now if it has not. Null if there is no such run. */
export async function readRunEnd(db: NodePgDatabase, runId: number) {
  const [end] = await db
    .select({
      at: isoText(sql`coalesce(${runs.finished_at}, clock_timestamp())`),
      isOpen: sql<boolean>`${runs.finished_at} is null`,
    })
    .from(runs)
    .where(eq(runs.id, runId));
  return end ?? null;
}

/** A moment as the server reads the text, and the server's time. */
export async function readMoment(db: NodePgDatabase, moment: string) {
  const at = sql`${moment}::timestamptz`;
  const [read] = await db
    .select({ at: isoText(at), now: isoText(sql`now`), isFuture: sql<boolean>`${at} > now` })
    .from(sql`clock_timestamp() as now`);
  if (read === undefined) throw new Error('a select of one row returned none');
  return read;
}

/**
 * Windows whose answers somebody should look at, each with its reasons: one of its records was not asked for and is still
 * an open reject, its withdrawal was held back and nobody has decided, or it was doubted for another reason and no later
 * good answer to all of its question has come. One with rejected records does not settle that, because its rows were not
 * compared with the stored ones.
 */
function doubtedWindows(db: NodePgDatabase) {
  const later = alias(windows, 'later');
  const itsRun = alias(runs, 'its_run');
  const better = db
    .select({ id: later.id })
    .from(later)
    .innerJoin(itsRun, and(eq(itsRun.id, later.run_id), notInArray(itsRun.kind, ['preview', 'replay'])))
    .where(
      and(
        sql`${later.id} > ${windows.id}`,
        eq(later.operation, windows.operation),
        eq(later.exchange, windows.exchange),
        lte(later.from_date, windows.from_date),
        gte(later.to_date, windows.to_date),
        eq(later.instruments, windows.instruments),
        eq(later.variant, windows.variant),
        inArray(later.state, ['loaded', 'empty']),
        isNull(later.suspicious),
        eq(later.rejected, 0),
        eq(later.is_filtered, false),
      ),
    );
  return sql`
    select id, string_agg(reason, '; ') as reason from (
      select window_id as id, case count(*) when 1 then 'a record is' else count(*) || ' records are' end
          || ' of a day, quarter or exchange that was not asked for' as reason
        from ${rejects} where is_stray and resolved_at is null group by window_id
      union all
      -- A replay folds again what other windows have loaded: the place says whose withdrawal it is.
      select coalesce(nullif(a.window_id, 0), w.window_id), w.reason
        from ${withdrawals} w left join ${answers} a on a.place = w.place where w.state = 'refused'
      union all
      select ${windows.id}, ${windows.unsettled} from ${windows} where ${and(isNotNull(windows.unsettled), notExists(better))}
    ) reasons group by id`;
}

const doubted = { id: sql`doubted.id`, reason: sql<string>`doubted.reason` };

/** Joins the window's run, unless that is a preview, which stores nothing. */
const ofStoringRun = and(eq(runs.id, windows.run_id), ne(runs.kind, 'preview'));

/** How many windows with doubted answers each operation and exchange has. */
export function countDoubtedWindows(db: NodePgDatabase) {
  const { operation, exchange } = windows;
  return db
    .select({ operation, exchange, windows: count() })
    .from(sql`(${doubtedWindows(db)}) doubted`)
    .innerJoin(windows, eq(windows.id, doubted.id))
    .innerJoin(runs, ofStoringRun)
    .groupBy(operation, exchange);
}

/** A window whose answer is doubted, with the reasons. */
export type DoubtedWindow = Awaited<ReturnType<typeof listDoubtedWindows>>[number];

/** Windows with doubted answers that touch these days, the newest first. */
export function listDoubtedWindows(db: NodePgDatabase, { from, to }: DayRange, limit: number) {
  return db
    .select({
      windowId: windows.id,
      runId: windows.run_id,
      operation: windows.operation,
      exchange: windows.exchange,
      from: windows.from_date,
      to: windows.to_date,
      reason: doubted.reason,
    })
    .from(sql`(${doubtedWindows(db)}) doubted`)
    .innerJoin(windows, eq(windows.id, doubted.id))
    .innerJoin(runs, ofStoringRun)
    .where(and(lte(windows.from_date, to), gte(windows.to_date, from)))
    .orderBy(desc(windows.id))
    .limit(limit);
}

/** What the source said, or else the failure of a window. */
const said = sql<string | null>`coalesce(${windows.diagnostic}, ${windows.error})`;

/** The condition that a window was blocked because the source refuses this key: its diagnostic is that of the key. */
const blockedByKey = (keyHash: string) => sql`(${windows.state} = 'blocked' and exists (
  select from ${accessKeys} k where k.key_hash = ${keyHash} and k.diagnostic = ${said}))`;

/** The diagnostic with which the source refused a key and stopped a run; null if it did not. */
export async function refusalInRun(
  db: NodePgDatabase,
  runId: number,
  keyHash: string,
): Promise<string | null> {
  const [window] = await db
    .select({ line: said })
    .from(windows)
    .where(and(eq(windows.run_id, runId), blockedByKey(keyHash)))
    .limit(1);
  return window?.line ?? null;
}

/**
 * How many windows of a run failed, by operation and exchange, with the newest reason.
 *
 * @param keyHash failures because this key was refused are left out; null: none are.
 */
export async function failuresOfRun(db: NodePgDatabase, runId: number, keyHash: string | null) {
  const { operation, exchange } = windows;
  return db
    .select({
      what: sql<string>`${operation} || ' ' || ${exchange}`,
      windows: count(),
      reason: sql<string | null>`(array_agg(${said} order by ${windows.id} desc))[1]`,
    })
    .from(windows)
    .where(
      and(
        eq(windows.run_id, runId),
        inArray(windows.state, ['failed', 'blocked']),
        keyHash === null ? undefined : not(blockedByKey(keyHash)),
      ),
    )
    .groupBy(operation, exchange)
    .orderBy(operation, exchange);
}

/** The median duration in seconds of the windows loaded last; null if there are none. */
export async function medianWindowSeconds(db: NodePgDatabase): Promise<number | null> {
  const recent = db
    .select({ started_at: windows.started_at, finished_at: windows.finished_at })
    .from(windows)
    .where(and(eq(windows.state, 'loaded'), eq(windows.requests, 1)))
    .orderBy(desc(windows.id))
    .limit(200)
    .as('recent');
  const seconds = sql`extract(epoch from ${recent.finished_at} - ${recent.started_at})`;
  const [found] = await db
    .select({ seconds: sql<number | null>`percentile_cont(0.5) within group (order by ${seconds})` })
    .from(recent);
  return found?.seconds ?? null;
}

/** SHA-256 hashes of the files that an import has loaded in full. */
export async function importedFileHashes(db: NodePgDatabase): Promise<Set<string>> {
  const found = await db
    .selectDistinct({ hash: sql<string>`${windows.source_hash}` })
    .from(windows)
    .innerJoin(runs, and(eq(runs.id, windows.run_id), eq(runs.kind, 'import')))
    .where(isNotNull(windows.source_hash))
    .groupBy(windows.source_hash, windows.run_id)
    .having(sql`bool_and(${windows.state} = 'loaded')`);
  return new Set(found.map(({ hash }) => hash));
}

/** The operations of which each session has records. */
const ALWAYS_WITH_RECORDS = operations
  .filter((operation) => !operation.emptyIsNormal && expectedVariants(operation) !== null)
  .map(({ name }) => name);

/**
 * The sessions of which these runs got an empty answer though each should have records, by operation and exchange; none
 * that may still be published, and none that a later run has asked about again.
 */
export function emptySessionsOfRuns(db: NodePgDatabase, runIds: readonly number[]) {
  const { operation, exchange, day, run_id } = coverage;
  return db
    .select({
      runId: runs.id,
      operation,
      exchange,
      from: sql<Day>`min(${day})::text`,
      to: sql<Day>`max(${day})::text`,
      sessions: count(),
    })
    .from(coverage)
    .innerJoin(runs, and(eq(runs.id, run_id), inArray(runs.kind, ['backfill', 'nightly', 'gap_fill'])))
    .innerJoin(sessions, and(eq(sessions.exchange, exchange), eq(sessions.day, day)))
    .where(
      and(
        inArray(run_id, [...runIds]),
        inArray(operation, ALWAYS_WITH_RECORDS),
        inArray(exchange, [...EXCHANGES]),
        between(day, runs.from_date, runs.to_date),
        eq(coverage.state, 'empty'),
      ),
    )
    .groupBy(runs.id, operation, exchange)
    .orderBy(runs.id, operation, exchange);
}

/** Why a window failed; null if it did not. */
export async function failureOfWindow(db: NodePgDatabase, windowId: number): Promise<string | null> {
  const [window] = await db
    .select({ error: windows.error })
    .from(windows)
    .where(and(eq(windows.id, windowId), eq(windows.state, 'failed')));
  return window?.error ?? null;
}

/** The load of a window, with its days; null if it loaded nothing. */
export async function readWindowLoad(db: NodePgDatabase, windowId: number) {
  const [load] = await db
    .select({
      loadId: loads.id,
      exchange: loads.exchange,
      from: loads.from_date,
      to: loads.to_date,
    })
    .from(windows)
    .innerJoin(loads, and(eq(loads.run_id, windows.run_id), eq(loads.window_id, windows.id)))
    .where(eq(windows.id, windowId));
  return load ?? null;
}

/** When the last completed run of each kind ended, in seconds since the epoch. */
export function lastCompletedRuns(db: NodePgDatabase) {
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
export function openWindowsByState(db: NodePgDatabase) {
  return db
    .select({ state: windows.state, windows: count() })
    .from(windows)
    .where(isOpen())
    .groupBy(windows.state);
}

/** The newest day of a nightly run, with how many of its runs are open or completed, and which failed; null if none. */
export async function readNewestNight(db: NodePgDatabase) {
  const newest = db
    .select({ day: max(runs.to_date) })
    .from(runs)
    .where(eq(runs.kind, 'nightly'));
  const isState = (...states: readonly RunState[]) => inArray(runs.state, [...states]);
  const [night] = await db
    .select({
      day: runs.to_date,
      open: sql`count(*) filter (where ${isState('running', 'paused')})`.mapWith(Number),
      completed: sql`count(*) filter (where ${isState('completed')})`.mapWith(Number),
      failed: sql<
        number[]
      >`coalesce(json_agg(${runs.id} order by ${runs.id}) filter (where ${isState('failed')}), '[]')`,
    })
    .from(runs)
    .where(and(eq(runs.kind, 'nightly'), eq(runs.to_date, newest)))
    .groupBy(runs.to_date);
  return night ?? null;
}
