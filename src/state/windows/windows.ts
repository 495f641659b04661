import { and, asc, eq, gt, gte, inArray, isNotNull, lte, or, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import type { Day, DayRange } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { forEachCount, type RecordCounts } from '../../core/record-counts.ts';
import { type Preparing, prepareOnce } from '../../postgres/prepared.ts';
import type { RunKind } from '../request.ts';
import { coverage } from '../schema/load-results.ts';
import { runs, windows } from '../schema/work.ts';
import { insertPieces, type NewWindow } from './plan.ts';
import { isOpen, moveWindows, moveWindowsInOrder, type WindowAfter } from './transitions.ts';

/**
 * The condition that a run calls the source. Others read files or kept responses, and no worker takes their windows.
 */
export const callsSource = () => sql`${runs.kind} not in ('import', 'replay', 'events')`;

const now = sql`clock_timestamp()`;

/** Why a window brought no data. */
export interface FailureInfo {
  readonly error: string;
  /** The source's own line, where it responded with one. */
  readonly diagnostic?: string | null | undefined;
}

/**
 * The condition that nobody has claimed a window since it had so many attempts. A worker that seemed lost may come back
 * with a failure while another one works on its window.
 *
 * @param claim not given if the window was not claimed.
 */
const isStillClaim = (claim: number | undefined) =>
  claim === undefined ? undefined : eq(windows.attempts, claim);

/**
 * Puts a window back for a later try, keeping what went wrong.
 *
 * @param options.claim its attempts when it was claimed: nothing is done if it was claimed again since.
 * @param options.act why: only the attempt of a `retry` counts towards the limit, only `await_data` is time in which the
 *   source prepares the response, and after `put_back` it is forgotten when it was started, because the source is not what
 *   it waits for now.
 * @param options.delayMs when it is tried again, if that is known.
 */
export async function releaseWindow(
  db: NodePgDatabase,
  windowId: number,
  failure: FailureInfo | null,
  {
    claim,
    act,
    delayMs = 0,
  }: {
    readonly claim?: number | undefined;
    readonly act: 'retry' | 'postpone' | 'await_data' | 'put_back';
    readonly delayMs?: number;
  },
): Promise<void> {
  const { error = null, diagnostic = null } = failure ?? {};
  const started_at = act === 'put_back' ? null : undefined;
  await moveWindows(
    db,
    'release',
    {
      state: 'pending',
      error,
      diagnostic,
      started_at,
      retry_at: sql`${now} + ${Math.ceil(delayMs)} * interval '1 millisecond'`,
      failed_attempts: sql`${windows.failed_attempts} + ${act === 'retry' ? 1 : 0}`,
      not_ready_ms: sql`${windows.not_ready_ms} + ${act === 'await_data' ? delayMs : 0}`,
    },
    and(eq(windows.id, windowId), isStillClaim(claim)),
  );
}

/** Notes why the response of a window, which its worker keeps, is not stored yet. */
export async function noteNotStored(
  db: NodePgDatabase,
  windowId: number,
  { error }: FailureInfo,
  claim: number | undefined,
): Promise<void> {
  const isNew = sql`${windows.error} is distinct from ${error}`;
  const isRunning = and(eq(windows.id, windowId), eq(windows.state, 'running'), isStillClaim(claim));
  await db.update(windows).set({ error }).where(and(isRunning, isNew));
}

/**
 * Starts a window that is processed without the queue.
 *
 * @returns false if it has ended, or its run is not running.
 */
export async function startWindow(db: NodePgDatabase, windowId: number): Promise<boolean> {
  const started = await moveWindows(
    db,
    'claim',
    {
      state: 'running',
      attempts: sql`${windows.attempts} + 1`,
      started_at: sql`coalesce(${windows.started_at}, ${now})`,
    },
    and(
      eq(windows.id, windowId),
      inArray(windows.run_id, db.select({ id: runs.id }).from(runs).where(eq(runs.state, 'running'))),
    ),
  );
  return started.rowCount === 1;
}

/** Ends a window for which there is nothing to load. @returns false if it had ended already. */
export async function skipWindow(db: NodePgDatabase, windowId: number, reason: string): Promise<boolean> {
  const skipped = { state: 'skipped', error: reason, finished_at: now } as const;
  return (await moveWindows(db, 'skip', skipped, eq(windows.id, windowId))).rowCount === 1;
}

/** How many windows of a group meet the condition. */
export const countWindows = (condition: SQL) => sql`count(*) filter (where ${condition})`.mapWith(Number);

const total = (name: 'requests' | 'bytes' | keyof RecordCounts) =>
  sql`coalesce(sum(${windows[name]}), 0)`.mapWith(Number).as(name);

/** Sums over the windows of a group. */
export const WINDOW_TOTALS = {
  requests: total('requests'),
  bytes: total('bytes'),
  ...forEachCount(total),
};

/** What is stored with the window of a response. */
interface StoredWindow {
  readonly state: WindowAfter<'store'>;
  readonly error: string | null;
  readonly counts: RecordCounts;
  /** Bytes the response took on the wire. */
  readonly bytes: number;
  readonly warnings: readonly string[];
  readonly suspicious: string | null;
  readonly unsettled: string | null;
}

/** The statement that ends a window whose response is stored. */
export function endingWindow(
  tx: NodePgDatabase,
  windowId: number,
  { counts, bytes, warnings, ...stored }: StoredWindow,
) {
  return moveWindows(
    tx,
    'store',
    {
      ...stored,
      ...counts,
      bytes: sql`${windows.bytes} + ${bytes}`,
      warnings: [...warnings],
      diagnostic: null,
      finished_at: now,
    },
    eq(windows.id, windowId),
  );
}

/** Notes why the responses of some windows are still suspicious, as they are read now. */
export async function noteUnsettled(
  tx: NodePgDatabase,
  noted: readonly { readonly windowId: number; readonly unsettled: string | null }[],
): Promise<void> {
  await tx.execute(sql`
    update ${windows} w set unsettled = n.unsettled
      from jsonb_to_recordset(${JSON.stringify(noted)}::jsonb) as n("windowId" bigint, unsettled text)
     where w.id = n."windowId" and w.unsettled is distinct from n.unsettled
       -- A load that holds its window may wait for this transaction.
       and w.id in (select id from ${windows} where id = any (${sql.param(noted.map((note) => note.windowId))}::bigint[]) order by id for update skip locked)`);
}

/** The days and instruments of a part of a replay. */
export interface ReplayedRange {
  readonly from: string;
  readonly to: string;
  /** In upper case. */
  readonly instruments: readonly string[];
}

/** The parts of the same tables that the run of a window replays, its own among them. */
export async function partsBeside(tx: NodePgDatabase, windowId: number): Promise<ReplayedRange[]> {
  const result = await tx.execute<{ [Name in keyof ReplayedRange]: ReplayedRange[Name] }>(sql`
    select w.from_date::text as "from", w.to_date::text as "to", w.instruments
      from ${windows} own join ${windows} w on w.run_id = own.run_id and w.exchange = own.exchange and w.params = own.params
     where own.id = ${windowId}`);
  return result.rows;
}

/** Selects a `NewWindow` with its ids. */
const asWindow = {
  id: windows.id,
  runId: windows.run_id,
  operation: windows.operation,
  exchange: windows.exchange,
  from: windows.from_date,
  to: windows.to_date,
  instruments: windows.instruments,
  params: windows.params,
  variant: windows.variant,
  filtered: windows.is_filtered,
};

/** The variants of a run's windows of some operations, by exchange. */
export async function variantsOfRun(
  db: NodePgDatabase,
  runId: number,
  operations: readonly string[],
): Promise<{ readonly operation: string; readonly exchange: string; readonly variants: string[] }[]> {
  return db
    .select({
      operation: windows.operation,
      exchange: windows.exchange,
      variants: sql<string[]>`array_agg(distinct ${windows.variant})`,
    })
    .from(windows)
    .where(and(eq(windows.run_id, runId), inArray(windows.operation, [...operations])))
    .groupBy(windows.operation, windows.exchange)
    .orderBy(windows.operation, windows.exchange);
}

/** A window that was ended, with what its coverage needs. */
export interface EndedWindow extends NewWindow {
  readonly id: number;
  readonly runId: number;
}

/** Which open windows to end: one; or those of running runs that call the source, of one run, operation or exchange. */
export interface Selection {
  readonly runId?: number;
  readonly windowId?: number;
  /** Attempts of the window when it was claimed, see `releaseWindow`. */
  readonly claim?: number | undefined;
  readonly operation?: string;
  readonly exchange?: string;
  /** With the window also the pending ones of its run, operation and exchange that are about no newer day than this. */
  readonly older?: OlderThan | undefined;
}

/** Days up to one that the source refused. */
interface OlderThan {
  readonly day: Day;
  readonly variant: string;
  /** Whether the day is expected to be too old for the source. If not, it is where a newer one has a response. */
  readonly isExpected: boolean;
}

/** The condition that a window waits, and is about days that are too old for the source. */
const isOlder = ({ day, variant, isExpected }: OlderThan) =>
  and(
    eq(windows.state, 'pending'),
    eq(windows.variant, variant),
    lte(windows.to_date, day),
    isExpected
      ? undefined
      : sql`exists (select from ${coverage} c where c.operation = ${windows.operation} and c.exchange = ${windows.exchange}
          and c.variant = ${variant} and c.day > ${day} and c.state in ('loaded', 'empty'))`,
  );

/** Ends open windows as failed, blocked or, with a warning, skipped. @returns those that it ended. */
export async function endWindows(
  db: NodePgDatabase,
  { runId, windowId, claim, operation, exchange, older }: Selection,
  state: WindowAfter<'end'>,
  { error, diagnostic = null }: FailureInfo,
): Promise<EndedWindow[]> {
  const running = db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.state, 'running'), callsSource()));
  const chosen = and(
    windowId === undefined
      ? inArray(windows.run_id, running)
      : or(and(eq(windows.id, windowId), isStillClaim(claim)), older && isOlder(older)),
    runId === undefined ? undefined : eq(windows.run_id, runId),
    operation === undefined ? undefined : eq(windows.operation, operation),
    exchange === undefined ? undefined : eq(windows.exchange, exchange),
  );
  const warnings = state === 'skipped' ? [error] : undefined;
  const ended = { state, error, diagnostic, warnings, finished_at: now };
  return moveWindowsInOrder(db, 'end', ended, chosen).returning(asWindow);
}

/** Cancels the open windows of a run. */
export async function cancelWindows(tx: NodePgDatabase, runId: number, reason: string): Promise<void> {
  const cancelled = { state: 'cancelled', error: reason, finished_at: now } as const;
  await moveWindowsInOrder(tx, 'cancel', cancelled, eq(windows.run_id, runId));
}

/**
 * Resets the pending windows of a run as if they had never been started, so that all time limits start again.
 *
 * @param failed whether to reopen windows that failed or were blocked, too.
 */
export async function reopenWindows(tx: NodePgDatabase, runId: number, failed: boolean): Promise<void> {
  const ofRun = eq(windows.run_id, runId);
  const started = { started_at: null, not_ready_ms: 0, failed_attempts: 0 };
  // All at once: a second statement would lock windows with lower ids than those that this one holds.
  await tx.select({ id: windows.id }).from(windows).where(ofRun).orderBy(asc(windows.id)).for('update');
  if (failed) {
    const ended = { error: null, diagnostic: null, finished_at: null, fetched: 0, rejected: 0 };
    await moveWindows(tx, 'reopen', { state: 'pending', ...ended }, ofRun);
  }
  await tx
    .update(windows)
    .set(started)
    .where(and(ofRun, eq(windows.state, 'pending')));
}

/**
 * Replaces a window by windows of shorter ranges. Its own row stays, as `split`, with the calls that were made for it;
 * records are counted in its children.
 *
 * @param options.claim as in `releaseWindow`.
 * @returns false if it had ended already; then nothing was written.
 */
export async function splitWindow(
  tx: NodePgDatabase,
  windowId: number,
  pieces: Parameters<typeof insertPieces>[2],
  { diagnostic = null, claim }: { diagnostic?: string | null; claim?: number | undefined } = {},
): Promise<boolean> {
  const parent = await moveWindows(
    tx,
    'split',
    { state: 'split', diagnostic, finished_at: now },
    and(eq(windows.id, windowId), isStillClaim(claim)),
  );
  if (parent.rowCount === 0) return false;
  await insertPieces(tx, windowId, pieces);
  return true;
}

/** What a window requests; null if there is none with this id. */
export async function readWindow(db: NodePgDatabase, windowId: number) {
  const { id, run_id, operation, exchange, from_date, to_date } = windows;
  const [window] = await db
    .select({ id, runId: run_id, operation, exchange, from: from_date, to: to_date })
    .from(windows)
    .where(eq(id, windowId));
  return window ?? null;
}

/** The first open window of a run, of the newest day: until the source has accepted the key, no other one is requested. */
export const firstOpenSql = (runId: SQL): SQL =>
  sql`(select o.id from ${windows} o where o.run_id = ${runId} and o.state in ('pending', 'running')
        order by o.to_date desc, o.id limit 1)`;

/**
 * The first open windows of a run that call the source, in the order they were planned, from the one after `after` on:
 * a backfill of years has more than should be held at once. Until the source has accepted the key in the run, there is one.
 */
export async function openWindows(
  db: NodePgDatabase,
  runId: number,
  { after, limit }: { readonly after: number; readonly limit: number },
) {
  return db
    .select({
      id: windows.id,
      runId: windows.run_id,
      kind: runs.kind,
      /** The day of the run: that of a night. */
      date: runs.to_date,
      operation: windows.operation,
      exchange: windows.exchange,
      to: windows.to_date,
      instruments: windows.instruments,
      /** True if it is a piece of a window that was split. */
      piece: isNotNull(windows.parent_id).mapWith(Boolean),
      /** True if the source is preparing the response. */
      prepared: gt(windows.not_ready_ms, 0).mapWith(Boolean),
    })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .where(
      and(
        eq(windows.run_id, runId),
        isOpen(),
        eq(runs.state, 'running'),
        callsSource(),
        gt(windows.id, after),
        or(runs.is_key_accepted, eq(windows.id, firstOpenSql(sql`${runId}`))),
      ),
    )
    .orderBy(asc(windows.id))
    .limit(limit);
}

/** The ranges of requests that an option narrowed, and that have a response: their days are not covered. */
export async function filteredRequests(db: NodePgDatabase): Promise<readonly (Pair & DayRange)[]> {
  const { operation, exchange, from_date, to_date } = windows;
  return db
    .selectDistinct({ operation, exchange, from: from_date, to: to_date })
    .from(windows)
    .where(and(eq(windows.is_filtered, true), inArray(windows.state, ['loaded', 'empty'])));
}

/** The condition that a window is left of a running run that calls the source. Its run is joined. */
const isToBeRequested = () => and(isOpen(), eq(runs.state, 'running'), callsSource());

/** The names of the operations and exchanges of which a running run that calls the source has windows left. */
export async function pairsWithOpenWindows(db: NodePgDatabase): Promise<ReadonlySet<string>> {
  const { run_id, operation, exchange } = windows;
  const pairs = await db
    .selectDistinct({ operation, exchange })
    .from(windows)
    .innerJoin(runs, eq(runs.id, run_id))
    .where(isToBeRequested());
  return new Set(pairs.map(pairName));
}

/** The days of the windows that are left of running runs that call the source; without those before a day. */
export async function openRequests(db: NodePgDatabase, since: Day): Promise<readonly (Pair & DayRange)[]> {
  const { run_id, operation, exchange, from_date, to_date } = windows;
  return db
    .selectDistinct({ operation, exchange, from: from_date, to: to_date })
    .from(windows)
    .innerJoin(runs, eq(runs.id, run_id))
    .where(and(isToBeRequested(), gte(to_date, since)));
}

/** How many windows are open of running runs that call the source, by the kind of their run. */
export async function countOpenWindows(db: NodePgDatabase): Promise<{ kind: RunKind; open: number }[]> {
  return db
    .select({ kind: runs.kind, open: sql`count(*)`.mapWith(Number) })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .where(isToBeRequested())
    .groupBy(runs.kind);
}

/** True if the run has a window that has not ended. */
export async function hasOpenWindows(db: Preparing, runId: number): Promise<boolean> {
  return (await selectOpen(db, { runId })).rowCount === 1;
}

const selectOpen = prepareOnce<{ runId: number }, { id: string }>(() =>
  new QueryBuilder()
    .select({ id: windows.id })
    .from(windows)
    .where(and(eq(windows.run_id, sql.placeholder('runId')), isOpen()))
    .limit(1),
);

/** Which of these pairs a run has open windows of. */
export async function openPairs(
  db: NodePgDatabase,
  runId: number,
  pairs: readonly (Pair | null)[],
): Promise<Pair[]> {
  const operations = new Set(pairs.flatMap((pair) => (pair === null ? [] : [pair.operation])));
  const { run_id, operation, exchange } = windows;
  return db
    .selectDistinct({ operation, exchange })
    .from(windows)
    .where(and(eq(run_id, runId), isOpen(), inArray(operation, [...operations])));
}

/** Open windows of a replay, in the order they were planned. */
export async function openReplayWindows(db: NodePgDatabase, runId: number) {
  return db
    .select(asWindow)
    .from(windows)
    .where(and(eq(windows.run_id, runId), isOpen()))
    .orderBy(asc(windows.id));
}

/** Notes the hash of a response of a window that cannot be read. */
export async function noteFailedResponse(tx: NodePgDatabase, windowId: number, hash: string): Promise<void> {
  await tx.update(windows).set({ refused_hash: hash }).where(eq(windows.id, windowId));
}
