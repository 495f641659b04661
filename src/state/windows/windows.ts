import { and, asc, eq, exists, gt, inArray, lte, or, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day } from '../../core/days.ts';
import type { RecordCounts } from '../../core/record-counts.ts';
import { coverage } from '../schema/load-results.ts';
import { runs, windows } from '../schema/work.ts';
import { insertPieces } from './plan.ts';
import { asWindow, callsSource } from './read-windows.ts';
import { moveWindows, moveWindowsInOrder, type WindowAfter } from './transitions.ts';

// The changes of windows, except for claiming (claim.ts); read-windows.ts reads them.

const now = sql`clock_timestamp()`;

/** Why a window brought no data. */
export interface FailureInfo {
  readonly error: string;
  /** The source's own line, where it responded with one. */
  readonly diagnostic?: string | null | undefined;
}

/**
 * The condition that a window was not claimed again since it had this many attempts. A worker that seemed lost may come back
 * with a failure while another one works on its window.
 *
 * @param claim not given if the window was not claimed.
 */
const isStillClaim = (claim: number | undefined) =>
  claim === undefined ? undefined : eq(windows.attempts, claim);

/**
 * Puts a window back for a later try, keeping what went wrong.
 *
 * @param options.claim its attempts when it was claimed; if it was claimed again since, nothing is done.
 * @param options.act why it is put back. `retry`: the attempt counts towards EOD_ATTEMPTS. `await_data`: the delay counts
 *   as time in which the source prepares the response. `put_back`: `started_at` is cleared, because it does not wait for
 *   the source. `postpone`: nothing is counted.
 * @param options.delayMs after how many milliseconds it is tried again.
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
      retry_at: sql`clock_timestamp() + ${Math.ceil(delayMs)} * interval '1 millisecond'`,
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
      started_at: sql`coalesce(${windows.started_at}, clock_timestamp())`,
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

/** What is stored with the window of a response. */
interface StoredWindow {
  readonly state: WindowAfter<'store'>;
  readonly error?: string | null;
  readonly counts: RecordCounts;
  /** Bytes the response took on the wire. */
  readonly bytes: number;
  readonly warnings?: readonly string[];
  readonly suspicious?: string | null;
  readonly unsettled?: string | null;
}

/** The statement that ends a window whose response is stored. */
export function endingWindow(
  tx: NodePgDatabase,
  windowId: number,
  { state, error = null, counts, bytes, warnings = [], suspicious = null, unsettled = null }: StoredWindow,
) {
  return moveWindows(
    tx,
    'store',
    {
      state,
      error,
      suspicious,
      unsettled,
      ...counts,
      bytes: sql`${windows.bytes} + ${bytes}`,
      warnings: [...warnings],
      diagnostic: null,
      finished_at: now,
    },
    eq(windows.id, windowId),
  );
}

/** Notes, after a replay, why the responses of some windows are still suspicious. */
export async function noteUnsettled(
  tx: NodePgDatabase,
  noted: readonly { readonly windowId: number; readonly unsettled: string | null }[],
): Promise<void> {
  await tx.execute(sql`
    with noted as materialized (
      select "windowId" as id, unsettled
        from jsonb_to_recordset(${JSON.stringify(noted)}::jsonb) as note("windowId" bigint, unsettled text)
    ), unlocked as materialized (
      -- A load that holds its window may wait for this transaction.
      select id from ${windows} where id in (select id from noted) order by id for update skip locked
    )
    update ${windows} w set unsettled = noted.unsettled
      from noted join unlocked using (id)
     where w.id = noted.id and w.unsettled is distinct from noted.unsettled`);
}

/**
 * Which open windows to end: that with this id, or all of running runs that call the source; `runId`, `operation` and
 * `exchange` narrow them.
 */
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
  /**
   * True if the settings already say that the day is too old for the source. If not, a window counts as too old only if a
   * newer day was loaded or is empty.
   */
  readonly isExpected: boolean;
}

/** The condition that a window waits, and is about days that are too old for the source. */
function isOlder(db: NodePgDatabase, { day, variant, isExpected }: OlderThan) {
  const newerDays = db
    .select({ day: coverage.day })
    .from(coverage)
    .where(
      and(
        eq(coverage.operation, windows.operation),
        eq(coverage.exchange, windows.exchange),
        eq(coverage.variant, variant),
        gt(coverage.day, day),
        inArray(coverage.state, ['loaded', 'empty']),
      ),
    );
  return and(
    eq(windows.state, 'pending'),
    eq(windows.variant, variant),
    lte(windows.to_date, day),
    isExpected ? undefined : exists(newerDays),
  );
}

/** Ends open windows as failed, blocked or, with a warning, skipped. @returns those that it ended, for their coverage. */
export async function endWindows(
  db: NodePgDatabase,
  { runId, windowId, claim, operation, exchange, older }: Selection,
  state: WindowAfter<'end'>,
  { error, diagnostic = null }: FailureInfo,
) {
  const running = db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.state, 'running'), callsSource()));
  const chosen = and(
    windowId === undefined
      ? inArray(windows.run_id, running)
      : or(and(eq(windows.id, windowId), isStillClaim(claim)), older && isOlder(db, older)),
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
 * @param withFailed whether to reopen windows that failed or were blocked, too.
 */
export async function reopenWindows(tx: NodePgDatabase, runId: number, withFailed: boolean): Promise<void> {
  const ofRun = eq(windows.run_id, runId);
  const unstarted = { started_at: null, not_ready_ms: 0, failed_attempts: 0 };
  // All at once: a second statement would lock windows with lower ids than those that this one holds.
  await tx.select({ id: windows.id }).from(windows).where(ofRun).orderBy(asc(windows.id)).for('update');
  if (withFailed) {
    const reopened = { error: null, diagnostic: null, finished_at: null, fetched: 0, rejected: 0 };
    await moveWindows(tx, 'reopen', { state: 'pending', ...reopened }, ofRun);
  }
  await tx
    .update(windows)
    .set(unstarted)
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

/** Notes the hash of a window's response that cannot be read. */
export async function noteUnreadableResponse(
  tx: NodePgDatabase,
  windowId: number,
  hash: string,
): Promise<void> {
  await tx.update(windows).set({ refused_hash: hash }).where(eq(windows.id, windowId));
}
