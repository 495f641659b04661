import { and, asc, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day } from '../../core/days.ts';
import type { NewWindow } from './new-windows.ts';
import type { RunKind, WindowState } from './run-request.ts';
import { runs, windows } from './schema/work.ts';

/**
 * What may become of a window. Every statement below that changes a state names its line here and
 * asks in SQL for one of the states the line begins at: from any other state it changes nothing.
 *
 * A window begins as `pending`, as `running` (a file that is being imported) or as `skipped` (nothing
 * is to be asked).
 */
export const WINDOW_TRANSITIONS = {
  claim: {
    from: ['pending', 'running'],
    to: ['running'],
    when: 'A worker takes it; from `running` where the worker that had it is gone.',
  },
  release: { from: ['running'], to: ['pending'], when: 'Its worker puts it back for a later try.' },
  store: {
    from: ['pending', 'running'],
    to: ['loaded', 'empty', 'failed'],
    when: 'Its answer is stored. From `pending` where it was put back while the answer was under way.',
  },
  end: {
    from: ['pending', 'running'],
    to: ['failed', 'blocked'],
    when: 'It is given up, alone or with all of its run, operation or exchange.',
  },
  skip: { from: ['pending', 'running'], to: ['skipped'], when: 'Nothing is to be loaded for it after all.' },
  split: { from: ['pending', 'running'], to: ['split'], when: 'Windows of shorter ranges take its place.' },
  cancel: { from: ['pending', 'running'], to: ['cancelled'], when: 'Its run is cancelled.' },
  reopen: { from: ['failed', 'blocked'], to: ['pending'], when: 'Its run is resumed.' },
} as const;

/** States of a window that is yet to be worked on. */
const OPEN = ['pending', 'running'] as const satisfies readonly WindowState[];

/** Is the window in a state this transition begins at? */
export function windowMay(transition: keyof typeof WINDOW_TRANSITIONS): SQL {
  return inArray(windows.state, [...WINDOW_TRANSITIONS[transition].from]);
}

const isOpen = () => inArray(windows.state, [...OPEN]);

/** Runs that ask the source: the others read files or kept answers, and no worker takes their windows. */
export const asksSource = () => sql`${runs.kind} not in ('import', 'replay')`;

const now = sql`clock_timestamp()`;

/** Why a window brought no data. */
export interface FailureInfo {
  readonly error: string;
  /** The source's own line, where it answered with one. */
  readonly diagnostic?: string | undefined;
}

/**
 * Puts a window back for a later try, keeping what went wrong.
 *
 * @param options.restart it is as if it had not been started: the time it then waits is not the source's.
 */
export async function releaseWindow(
  db: NodePgDatabase,
  windowId: number,
  failure: FailureInfo | null,
  { restart = false } = {},
): Promise<void> {
  await db
    .update(windows)
    .set({
      state: 'pending',
      error: failure?.error ?? null,
      diagnostic: failure?.diagnostic ?? null,
      ...(restart ? { started_at: null } : {}),
    })
    .where(and(eq(windows.id, windowId), windowMay('release')));
}

/**
 * Starts a window that is worked on without the queue.
 *
 * @returns false when it has ended, or its run was cancelled or paused.
 */
export async function startWindow(db: NodePgDatabase, windowId: number): Promise<boolean> {
  const started = await db
    .update(windows)
    .set({
      state: 'running',
      attempts: sql`${windows.attempts} + 1`,
      started_at: sql`coalesce(${windows.started_at}, ${now})`,
    })
    .from(runs)
    .where(
      and(
        eq(windows.id, windowId),
        windowMay('claim'),
        eq(runs.id, windows.run_id),
        eq(runs.state, 'running'),
      ),
    );
  return started.rowCount === 1;
}

/** Ends a window for which nothing is to be loaded. @returns false when it had ended already. */
export async function skipWindow(db: NodePgDatabase, windowId: number, reason: string): Promise<boolean> {
  const skipped = await db
    .update(windows)
    .set({ state: 'skipped', error: reason, finished_at: now })
    .where(and(eq(windows.id, windowId), windowMay('skip')));
  return skipped.rowCount === 1;
}

/**
 * Locks a window's row until the transaction ends, so that nobody else ends it meanwhile.
 *
 * @returns false when it has ended already.
 */
export async function lockOpenWindow(tx: NodePgDatabase, windowId: number): Promise<boolean> {
  const open = await tx
    .select({ id: windows.id })
    .from(windows)
    .where(and(eq(windows.id, windowId), windowMay('store')))
    .for('update');
  return open.length === 1;
}

/** What became of the records of an answer. `fetched` is the sum of all the others but `withdrawn`. */
export interface RecordCounts {
  readonly fetched: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly duplicate: number;
  readonly rejected: number;
  /** Rows marked as no longer listed; not part of the sum. */
  readonly withdrawn: number;
}

/** What is kept of an answer with its window. */
interface StoredWindow {
  readonly state: 'loaded' | 'empty' | 'failed';
  readonly error: string | null;
  readonly counts: RecordCounts;
  /** Bytes the answer took on the wire. */
  readonly bytes: number;
  readonly warnings: readonly string[];
  readonly suspicious: string | null;
  /** What a preview would have changed. */
  readonly preview?: unknown;
}

/** Ends a window whose answer is stored. @returns false when it had ended already. */
export async function storeWindow(
  tx: NodePgDatabase,
  windowId: number,
  { counts, bytes, warnings, ...stored }: StoredWindow,
): Promise<boolean> {
  const ended = await tx
    .update(windows)
    .set({
      ...stored,
      ...counts,
      bytes: sql`${windows.bytes} + ${bytes}`,
      warnings: [...warnings],
      diagnostic: null,
      finished_at: now,
    })
    .where(and(eq(windows.id, windowId), windowMay('store')));
  return ended.rowCount === 1;
}

/** Windows that ended together, with what their coverage needs. */
export interface EndedWindow extends NewWindow {
  readonly id: number;
  readonly runId: number;
}

/** Selects a `NewWindow`. */
export const asNewWindow = {
  operation: windows.operation,
  exchange: windows.exchange,
  from: windows.from_date,
  to: windows.to_date,
  instruments: windows.instruments,
  params: windows.params,
  variant: windows.variant,
  filtered: windows.filtered,
};

/** Which open windows to end; nothing given means all of every running run that asks the source. */
export interface Selection {
  readonly runId?: number;
  readonly windowId?: number;
  readonly operation?: string;
  readonly exchange?: string;
}

/** Ends open windows as failed or blocked and says which they were. */
export async function endWindows(
  tx: NodePgDatabase,
  { runId, windowId, operation, exchange }: Selection,
  state: 'failed' | 'blocked',
  { error, diagnostic }: FailureInfo,
): Promise<EndedWindow[]> {
  const running = tx
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.state, 'running'), windowId === undefined ? asksSource() : undefined));
  const chosen = tx
    .select({ id: windows.id })
    .from(windows)
    .where(
      and(
        windowMay('end'),
        inArray(windows.run_id, running),
        runId === undefined ? undefined : eq(windows.run_id, runId),
        windowId === undefined ? undefined : eq(windows.id, windowId),
        operation === undefined ? undefined : eq(windows.operation, operation),
        exchange === undefined ? undefined : eq(windows.exchange, exchange),
      ),
    )
    // In one order everywhere, so that two writers cannot deadlock.
    .orderBy(asc(windows.id))
    .for('update');
  return tx
    .update(windows)
    .set({ state, error, diagnostic: diagnostic ?? null, finished_at: now })
    .where(inArray(windows.id, chosen))
    .returning({ id: windows.id, runId: windows.run_id, ...asNewWindow });
}

/** Ends one window as failed, whatever the state of its run. */
export async function failWindow(db: NodePgDatabase, windowId: number, error: string): Promise<void> {
  await db
    .update(windows)
    .set({ state: 'failed', error, finished_at: now })
    .where(and(eq(windows.id, windowId), windowMay('end')));
}

/** Ends what is open of a run as cancelled. */
export async function cancelWindows(tx: NodePgDatabase, runId: number, reason: string): Promise<void> {
  await tx
    .update(windows)
    .set({ state: 'cancelled', error: reason, finished_at: now })
    .where(and(eq(windows.run_id, runId), windowMay('cancel')));
}

/** Opens windows of a run that failed or were blocked again. */
export async function reopenWindows(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx
    .update(windows)
    .set({
      state: 'pending',
      error: null,
      diagnostic: null,
      finished_at: null,
      fetched: 0,
      rejected: 0,
    })
    .where(and(eq(windows.run_id, runId), windowMay('reopen')));
}

/** Restarts the time that the source has to get ready, for the pending windows of a run. */
export async function restartPendingWindows(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx
    .update(windows)
    .set({ started_at: null })
    .where(and(eq(windows.run_id, runId), eq(windows.state, 'pending')));
}

/** A piece of a window that is to be split. */
export interface Piece {
  readonly from: Day;
  readonly to: Day;
}

/**
 * Replaces a window by windows of shorter ranges. Its own row stays, as `split`, with the calls it
 * took; records are counted in its children.
 *
 * @returns false when it had ended already: then nothing was written.
 */
export async function splitWindow(
  tx: NodePgDatabase,
  windowId: number,
  pieces: readonly Piece[],
): Promise<boolean> {
  const parent = await tx
    .update(windows)
    .set({ state: 'split', finished_at: now })
    .where(and(eq(windows.id, windowId), windowMay('split')));
  if (parent.rowCount === 0) return false;
  await tx.execute(sql`
    insert into ${windows} (run_id, parent_id, operation, exchange, from_date, to_date, instruments, params, variant, filtered)
    select w.run_id, w.id, w.operation, w.exchange, piece."from", piece."to", w.instruments, w.params, w.variant, w.filtered
      from ${windows} w, jsonb_to_recordset(${JSON.stringify(pieces)}::jsonb) as piece("from" date, "to" date)
     where w.id = ${windowId}`);
  return true;
}

/** Locks windows of a run and operation that were not started and span more than so many days. */
export async function lockWiderWindows(
  tx: NodePgDatabase,
  asked: { readonly runId: number; readonly operation: string; readonly days: number },
): Promise<(Piece & { readonly id: number; readonly exchange: string })[]> {
  return tx
    .select({
      id: windows.id,
      exchange: windows.exchange,
      from: windows.from_date,
      to: windows.to_date,
    })
    .from(windows)
    .where(
      and(
        eq(windows.run_id, asked.runId),
        eq(windows.operation, asked.operation),
        eq(windows.state, 'pending'),
        sql`${windows.to_date} - ${windows.from_date} >= ${asked.days}`,
      ),
    )
    .orderBy(asc(windows.id))
    .for('update');
}

/** A window that has not ended, as the queue needs to know it. */
export interface OpenWindow {
  readonly id: number;
  readonly runId: number;
  readonly kind: RunKind;
  /** It is a piece of a window that was split. */
  readonly piece: boolean;
}

/** Open windows of these runs that ask the source, in the order they were planned. */
export async function openWindows(db: NodePgDatabase, runIds: readonly number[]): Promise<OpenWindow[]> {
  return db
    .select({
      id: windows.id,
      runId: windows.run_id,
      kind: runs.kind,
      piece: sql<boolean>`${windows.parent_id} is not null`,
    })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .where(and(inArray(windows.run_id, [...runIds]), isOpen(), eq(runs.state, 'running'), asksSource()))
    .orderBy(asc(windows.id));
}

export async function hasOpenWindows(db: NodePgDatabase, runId: number): Promise<boolean> {
  const found = await db
    .select({ id: windows.id })
    .from(windows)
    .where(and(eq(windows.run_id, runId), isOpen()))
    .limit(1);
  return found.length === 1;
}

/** A window of a replay that has not ended. */
export interface ReplayWindow extends EndedWindow {
  /** The kept answer it reads; null where it reads what its parent refused. */
  readonly responseId: number | null;
  readonly parentId: number | null;
}

/** Open windows of a replay, in the order they were planned. */
export async function openReplayWindows(db: NodePgDatabase, runId: number): Promise<ReplayWindow[]> {
  return db
    .select({
      id: windows.id,
      runId: windows.run_id,
      responseId: windows.response_id,
      parentId: windows.parent_id,
      ...asNewWindow,
    })
    .from(windows)
    .where(and(eq(windows.run_id, runId), isOpen()))
    .orderBy(asc(windows.id));
}

/** A person has decided what was suspicious about the answer of a window. */
export async function clearSuspicion(tx: NodePgDatabase, windowId: number): Promise<void> {
  await tx.update(windows).set({ suspicious: null }).where(eq(windows.id, windowId));
}
