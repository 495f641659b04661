import {
  and,
  asc,
  type Column,
  count,
  desc,
  eq,
  inArray,
  isNotNull,
  lt,
  min,
  ne,
  notInArray,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { unknownRunError } from '../../core/errors.ts';
import { groupBy } from '../../core/iterables.ts';
import type { Retry } from '../../core/wording.ts';
import type { CompletenessContext } from '../coverage/completeness.ts';
import { readRunStateNumbers } from '../loads/state-numbers.ts';
import type { WindowState } from '../request.ts';
import { isoText } from '../schema/columns.ts';
import { runs, windows } from '../schema/work.ts';
import { countWindows, WINDOW_TOTALS } from '../windows/read-windows.ts';
import { isOpen } from '../windows/transitions.ts';
import { listRunWithdrawals } from '../withdrawals.ts';
import { listEmptyTradingDays } from './outcomes.ts';

/** The report of a run, ended or not. */
export type RunReport = Awaited<ReturnType<typeof reportRun>>;

/** What a run did of one operation and exchange. */
export type OperationReport = RunReport['operations'][number];

const inState = (state: WindowState) => countWindows(eq(windows.state, state));

/** Seconds from one moment to another, to the millisecond. */
const secondsBetween = (from: SQL | Column, to: SQL | Column) =>
  sql`round(coalesce(extract(epoch from ${to} - ${from}), 0)::numeric, 3)`.mapWith(Number);

/** A window that was split is counted by the windows that replaced it; only its calls are its own. */
const notSplit = ne(windows.state, 'split');
const requested = notInArray(windows.state, ['split', 'skipped']);

const COUNTS = {
  /** By how they ended; `open` ones have not. */
  windows: {
    total: countWindows(notSplit),
    loaded: inState('loaded'),
    empty: inState('empty'),
    skipped: inState('skipped'),
    blocked: inState('blocked'),
    failed: inState('failed'),
    cancelled: inState('cancelled'),
    open: countWindows(isOpen()),
  },
  ...WINDOW_TOTALS,
  /** Calls per window that was loaded or empty; null if there is none. */
  callsPerLoadedWindow: sql`round(
      sum(${windows.requests})::numeric
        / nullif(count(*) filter (where ${windows.state} in ('loaded', 'empty')), 0),
      2)`.mapWith(Number),
  seconds: secondsBetween(sql`min(${windows.started_at})`, sql`max(${windows.finished_at})`),
};

/** How many different warnings the report of a run contains. */
const MAX_WARNINGS = 50;

/** Everything about one run. @throws PipelineError `usage` when there is no such run. */
export async function reportRun(context: CompletenessContext, runId: number) {
  const [report] = await readReports(context, eq(runs.id, runId));
  if (report === undefined) throw unknownRunError(runId);
  return report;
}

/** The newest runs, the newest first, with their reports. */
export const listRuns = (context: CompletenessContext, limit: number) =>
  readReports(context, areNewest(context.db.drizzle, { before: null, limit }));

/** A run in a list, without details of its windows. */
export type RunSummary = Awaited<ReturnType<typeof listRunSummaries>>[number];

/**
 * The newest runs, the newest first.
 *
 * @param page.before only those with a smaller number.
 */
export const listRunSummaries = async (db: NodePgDatabase, page: Page) =>
  selectSummaries(db, areNewest(db, page));

interface Page {
  readonly before: number | null;
  readonly limit: number;
}

function areNewest(db: NodePgDatabase, { before, limit }: Page): SQL {
  const listed = db
    .select({ id: runs.id })
    .from(runs)
    .where(before === null ? undefined : lt(runs.id, before))
    .orderBy(desc(runs.id))
    .limit(limit);
  return inArray(runs.id, listed);
}

/** The summary of one run; null if there is no such run. */
export async function readRunSummary(db: NodePgDatabase, runId: number): Promise<RunSummary | null> {
  const [summary] = await selectSummaries(db, eq(runs.id, runId));
  return summary ?? null;
}

/** The columns of a run's summary. */
const SUMMARY = {
  runId: runs.id,
  kind: runs.kind,
  state: runs.state,
  from: runs.from_date,
  to: runs.to_date,
  ...COUNTS,
  seconds: secondsBetween(runs.started_at, sql`coalesce(${runs.finished_at}, clock_timestamp())`),
  error: runs.error,
  startedAt: isoText(sql`${runs.started_at}`),
  /** Null while the run is open. */
  finishedAt: sql<string | null>`${isoText(sql`${runs.finished_at}`)}`,
  requestedBy: runs.requested_by,
};

function selectSummaries(db: NodePgDatabase, chosen: SQL) {
  return db
    .select(SUMMARY)
    .from(runs)
    .leftJoin(windows, eq(windows.run_id, runs.id))
    .where(chosen)
    .groupBy(runs.id)
    .orderBy(desc(runs.id));
}

/** What these runs did of each operation and exchange. */
export function listRunOperations(db: NodePgDatabase, runIds: readonly number[]) {
  const { run_id: runId, operation, exchange } = windows;
  return db
    .select({ runId, operation, exchange, ...COUNTS })
    .from(windows)
    .where(inArray(runId, [...runIds]))
    .groupBy(runId, operation, exchange)
    .orderBy(min(windows.id));
}

/** The first windows of a run that failed, or were blocked or cancelled. */
export function listUnloadedWindows(db: NodePgDatabase, runId: number, limit: number) {
  return db
    .select({
      ...UNLOADED,
      attempts: windows.attempts,
      reason: sql<string | null>`coalesce(${windows.error}, ${windows.diagnostic})`,
    })
    .from(windows)
    .where(and(eq(windows.run_id, runId), isUnloaded))
    .orderBy(windows.id)
    .limit(limit);
}

const isUnloaded = inArray(windows.state, ['failed', 'blocked', 'cancelled']);

/** The columns that identify a window in a report. */
const WINDOW_NAME = {
  windowId: windows.id,
  operation: windows.operation,
  exchange: windows.exchange,
  from: windows.from_date,
  to: windows.to_date,
};

/** What is listed of a window that was not loaded. */
const UNLOADED = {
  ...WINDOW_NAME,
  instruments: windows.instruments,
  variant: windows.variant,
  state: windows.state,
};

/** What failed of these open runs and is tried again, by operation, exchange and reason; the next try first. */
export async function listRetries(
  db: NodePgDatabase,
  runIds: readonly number[],
): Promise<(Retry & { readonly runId: number })[]> {
  const result = await db.execute<Retry & { readonly runId: number } & Record<string, unknown>>(sql`
    select w.run_id::int as "runId", w.operation, w.exchange, w.error, count(*)::int as windows,
           max(w.attempts + case w.state when 'pending' then 1 else 0 end) as attempt,
           case when r.state = 'running' and min(w.retry_at) > clock_timestamp()
             then ${isoText(sql`min(w.retry_at)`)} end as "retryAt",
           r.state <> 'running' as "isPaused"
      from ${windows} w join ${runs} r on r.id = w.run_id
     where w.run_id = any(${sql.param(runIds)}::bigint[])
       and w.state in ('pending', 'running')
       and w.error is not null
       and w.retry_at is not null
     group by w.run_id, r.state, w.operation, w.exchange, w.error
     order by w.run_id, min(w.retry_at), w.operation, w.exchange`);
  return result.rows;
}

/** The windows of these runs whose responses are suspicious. */
export function listSuspiciousWindowsOfRuns(db: NodePgDatabase, runIds: readonly number[]) {
  return db
    .select({
      runId: windows.run_id,
      ...WINDOW_NAME,
      state: windows.state,
      reason: sql<string>`${windows.suspicious}`,
    })
    .from(windows)
    .where(and(inArray(windows.run_id, [...runIds]), isNotNull(windows.suspicious)))
    .orderBy(windows.id);
}

/** A warning about responses of an operation in a run, and of how many windows. */
type RunWarning = Readonly<Record<'operation' | 'warning', string> & Record<'runId' | 'windows', number>>;

/** The warnings about responses, the most frequent first. Lines that the files of an import skip are one, with their sum. */
async function listWarnings(db: NodePgDatabase, runIds: readonly number[]): Promise<RunWarning[]> {
  const result = await db.execute<RunWarning>(sql`
    select w.run_id::int as "runId", w.operation, count(*)::int as windows,
           replace(said.warning, 'lines skipped: N', concat('lines skipped: ', sum(said.lines))) as warning
      from ${windows} w
     cross join lateral unnest(w.warnings) as stored(warning)
     cross join lateral (
       select regexp_replace(stored.warning, '^lines skipped: \\d+', 'lines skipped: N') as warning,
              substring(stored.warning from '^lines skipped: (\\d+)')::bigint as lines
     ) said
     where w.run_id = any(${sql.param(runIds)}::bigint[])
     group by w.run_id, w.operation, said.warning
     order by count(*) desc, w.operation, said.warning`);
  return result.rows;
}

/** The reports of some runs, the newest first, with the same few queries for any number of runs. */
async function readReports(context: CompletenessContext, chosen: SQL) {
  const db = context.db.drizzle;
  const summaries = await selectSummaries(db, chosen);
  if (summaries.length === 0) return [];
  const runIds = summaries.map((run) => run.runId);
  const { run_id: runId } = windows;
  const ofRuns = inArray(runId, runIds);
  const operations = byRun(await listRunOperations(db, runIds));
  const failures = byRun(
    await db
      .select({ runId, ...UNLOADED, error: windows.error })
      .from(windows)
      .where(and(ofRuns, isUnloaded))
      .orderBy(windows.id),
  );
  const reason = sql<string>`coalesce(${windows.error}, '')`;
  const skips = byRun(
    await db
      .select({ runId, reason, windows: count() })
      .from(windows)
      .where(and(ofRuns, eq(windows.state, 'skipped')))
      .groupBy(runId, reason)
      .orderBy(desc(count()), asc(reason)),
  );
  const warnings = byRun(await listWarnings(db, runIds));
  const suspicious = byRun(
    (await listSuspiciousWindowsOfRuns(db, runIds)).map(({ state: _, ...window }) => window),
  );
  const retries = byRun(await listRetries(db, runIds));
  const empty = byRun(await listEmptyTradingDays(context, runIds));
  const withdrawals = byRun(await listRunWithdrawals(db, runIds));
  const stateNumbers = byRun(await readRunStateNumbers(db, runIds));
  return summaries.map(({ requestedBy: _, ...run }) => ({
    ...run,
    /** State numbers before the run's first load and after its last. */
    states: stateNumbers(run)[0] ?? { before: 0, after: 0 },
    operations: operations(run),
    failures: failures(run),
    /** What failed so far and is tried again, while the run is open. */
    retries: retries(run),
    /** What was odd about responses, each warning once with the number of windows; the most frequent ones. */
    warnings: warnings(run).slice(0, MAX_WARNINGS),
    /** Windows that are suspicious, such as those whose response lacked too many rows to be withdrawn. */
    suspicious: suspicious(run),
    /** Data sets of which no response of the run had a record, and how many windows say so. */
    withoutRecords: operations(run).flatMap(({ operation: name, exchange, windows: ended, fetched }) =>
      fetched === 0 && ended.empty > 0 ? [{ operation: name, exchange, windows: ended.empty }] : [],
    ),
    /** Trading days that should have records and of which the response had none. */
    emptySessions: empty(run),
    /** By day, the rows that full responses no longer listed: withdrawn, or withheld. */
    withdrawals: withdrawals(run),
    /** Why windows were skipped, and how many for each reason. */
    skips: skips(run),
  }));
}

/** The rows of each run, without its number. */
function byRun<Row extends { readonly runId: number }>(rows: readonly Row[]) {
  const grouped = groupBy(rows, ({ runId }) => runId);
  return ({ runId: id }: { readonly runId: number }) =>
    (grouped.get(id) ?? []).map(({ runId: _, ...row }) => row);
}

/** How far a run is. */
export type RunProgress = Awaited<ReturnType<typeof selectProgress>>[number];

export type Progress = Omit<RunProgress, 'runId' | 'error'>;

async function selectProgress(db: NodePgDatabase, chosen: SQL) {
  return db
    .select({
      runId: runs.id,
      kind: runs.kind,
      state: runs.state,
      /** What paused it; null while it runs. */
      error: runs.error,
      /** True if part of the run is yet to be planned. */
      isDeferred: sql<boolean>`${runs.deferred} <> '[]'::jsonb`,
      /** Windows with something to request, and those of them that have ended. */
      total: countWindows(requested),
      ended: countWindows(sql`${requested} and not ${isOpen()}`),
      requests: WINDOW_TOTALS.requests,
      fetched: WINDOW_TOTALS.fetched,
    })
    .from(runs)
    .leftJoin(windows, eq(windows.run_id, runs.id))
    .where(chosen)
    .groupBy(runs.id)
    .orderBy(runs.id);
}

/**
 * How far a run is; cheap enough to be read several times a second.
 *
 * @throws PipelineError `usage` when there is no such run.
 */
export async function readRunProgress(db: NodePgDatabase, runId: number): Promise<RunProgress> {
  const [progress] = await selectProgress(db, eq(runs.id, runId));
  if (progress === undefined) throw unknownRunError(runId);
  return progress;
}

/** A run that has not ended. */
export interface OpenRunProgress extends RunProgress {
  /** What failed so far and is tried again. */
  readonly retries: readonly Retry[];
}

/** How far each run is that has not ended, the oldest first, and what of it failed. */
export async function readOpenRunsProgress(db: NodePgDatabase): Promise<OpenRunProgress[]> {
  const open = await selectProgress(db, inArray(runs.state, ['running', 'paused']));
  const ids = open.map(({ runId }) => runId);
  const retries = byRun(await listRetries(db, ids));
  return open.map((run) => ({ ...run, retries: retries(run) }));
}
