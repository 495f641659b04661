import { and, asc, eq, gt, inArray, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import { type Day, type DayRange, UNKNOWN_DAY } from '../../core/days.ts';
import { firstItem } from '../../core/iterables.ts';
import { forEachCount } from '../../core/record-counts.ts';
import type { RunKind, RunRequest, RunState, Target, Transitions } from '../request.ts';
import { takeId } from '../schema/columns.ts';
import { runs, windows } from '../schema/work.ts';
import { callsSource, countWindows, KINDS_WITHOUT_CALLS, WINDOW_TOTALS } from '../windows/read-windows.ts';
import { selectOldRuns } from '../windows/retention.ts';
import { isOpen, canBegin as windowsThatMay } from '../windows/transitions.ts';
import { cancelWindows, reopenWindows } from '../windows/windows.ts';

/** The transitions of a run. No statement sets a state that its transition does not list. */
export const RUN_TRANSITIONS = {
  start: { from: [], to: ['running'], when: 'It is inserted, in most cases with all of its windows.' },
  pause: { from: ['running'], to: ['paused'], when: 'No worker starts another window of it.' },
  finish: {
    from: ['running'],
    to: ['completed', 'failed', 'cancelled'],
    when: 'It has no open window left. `cancelled`: an import that did not reach all of its files.',
  },
  cancel: {
    from: ['running', 'paused'],
    to: ['cancelled'],
    when: 'Cancelled by hand; its open windows are cancelled with it.',
  },
  reopen: {
    from: ['running', 'paused', 'failed'],
    to: ['running'],
    when: 'Resumed; from `running` if the process that worked on it is gone.',
  },
} as const satisfies Transitions<RunState>;

type Transition = keyof typeof RUN_TRANSITIONS;

/** A state that this transition ends in. */
type RunAfter<Name extends Transition> = (typeof RUN_TRANSITIONS)[Name]['to'][number];

/** The condition that the run is in a state that this transition starts from. */
const canBegin = (transition: Transition): SQL => inArray(runs.state, [...RUN_TRANSITIONS[transition].from]);

/** Makes this transition. @returns false if the run is in a state that it does not start from. */
async function moveRun<Name extends Transition>(
  db: NodePgDatabase,
  transition: Name,
  values: PgUpdateSetSource<typeof runs> & { readonly state: RunAfter<Name> },
  runId: number,
): Promise<boolean> {
  const moved = await db
    .update(runs)
    .set(values)
    .where(and(eq(runs.id, runId), canBegin(transition)));
  return moved.rowCount === 1;
}

const now = sql`clock_timestamp()`;

/**
 * Reserves the id of a run that will be inserted later. If the connection breaks during the insert, it is not known
 * whether the run was inserted; a second insert with the same id does not create it twice.
 */
export const reserveRunId = (db: NodePgDatabase): Promise<number> => takeId(db, runs);

/** A run to be inserted. */
interface NewRun extends DayRange {
  /** From `reserveRunId`. */
  readonly id: number;
  readonly kind: RunKind;
  readonly requestedBy: string;
  /** What was requested, as data. */
  readonly request: object;
  /** Unique name of the time at which a schedule started it. */
  readonly tick?: string | undefined;
  readonly deferred?: readonly Target[];
}

/** Inserts a run. @returns its id; null if a run with the same id or tick exists already. */
export async function insertRun(
  db: NodePgDatabase,
  { id, kind, requestedBy, request, from, to, tick, deferred = [] }: NewRun,
): Promise<number | null> {
  const inserted = await db
    .insert(runs)
    .values({
      id,
      kind,
      state: 'running' satisfies RunAfter<'start'>,
      requested_by: requestedBy,
      request,
      from_date: from,
      to_date: to,
      tick: tick ?? null,
      deferred,
    })
    .onConflictDoNothing()
    .returning({ id: runs.id });
  return inserted[0]?.id ?? null;
}

/** Sets the range of a run to that of its windows, where they have days. */
export async function setRunRange(db: NodePgDatabase, runId: number): Promise<void> {
  const isDated = gt(windows.from_date, UNKNOWN_DAY);
  const range = db
    .select({
      first: sql`min(${windows.from_date}) filter (where ${isDated})`.as('first'),
      last: sql`max(${windows.to_date}) filter (where ${isDated})`.as('last'),
    })
    .from(windows)
    .where(eq(windows.run_id, runId))
    .as('range');
  await db
    .update(runs)
    .set({
      from_date: sql`coalesce(${range.first}, ${runs.from_date})`,
      to_date: sql`coalesce(${range.last}, ${runs.to_date})`,
    })
    .from(range)
    .where(eq(runs.id, runId));
}

/** The state of a run, and what it was requested to do, as data; null if there is no such run. */
export async function readRun(db: NodePgDatabase, runId: number) {
  const [run] = await db
    .select({ state: runs.state, request: runs.request })
    .from(runs)
    .where(eq(runs.id, runId));
  return run ?? null;
}

/** Milliseconds since a run was started, or resumed. */
export async function readRunAge(db: NodePgDatabase, runId: number): Promise<number> {
  const [run] = await db
    .select({
      age: sql`
        extract(epoch from clock_timestamp() - coalesce(${runs.resumed_at}, ${runs.started_at})) * 1000`.mapWith(
        Number,
      ),
    })
    .from(runs)
    .where(eq(runs.id, runId));
  return run?.age ?? 0;
}

/** Ids of the running runs of a kind, or of all kinds, oldest first. */
export async function listRunningRuns(db: NodePgDatabase, kind?: RunKind): Promise<number[]> {
  const rows = await db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.state, 'running'), kind === undefined ? undefined : eq(runs.kind, kind)))
    .orderBy(asc(runs.id));
  return rows.map((run) => run.id);
}

/** Pauses a run. @param error what stopped it. @returns false if it was not running. */
export function pauseRun(db: NodePgDatabase, runId: number, error: string): Promise<boolean> {
  return moveRun(db, 'pause', { state: 'paused', error }, runId);
}

/** Cancels a run and its open windows. @returns false if it had ended already. */
export async function cancelRun(tx: NodePgDatabase, runId: number, reason: string): Promise<boolean> {
  // The run first: its row lock waits for the process that is planning more of its windows, so that none is missed.
  const values = { state: 'cancelled', deferred: [], finished_at: now } as const;
  if (!(await moveRun(tx, 'cancel', values, runId))) return false;
  await cancelWindows(tx, runId, reason);
  return true;
}

/**
 * Resumes a run: a paused or interrupted one with the windows that are left, a failed one with those that failed or
 * were blocked.
 *
 * @returns false if nothing is left to do, because it is completed or cancelled.
 */
export async function reopenRun(tx: NodePgDatabase, runId: number): Promise<boolean> {
  const [run] = await tx
    .select({ state: runs.state })
    .from(runs)
    .where(and(eq(runs.id, runId), canBegin('reopen')))
    .for('update');
  if (run === undefined) return false;
  const reopened = { state: 'running', error: null, finished_at: null, resumed_at: now } as const;
  const forgotten = { is_key_accepted: false, follow_up: 'none', follow_up_attempts: 0 } as const;
  await moveRun(tx, 'reopen', { ...reopened, ...forgotten }, runId);
  const hasFailed = run.state === 'failed';
  await reopenWindows(tx, runId, hasFailed);
  if (hasFailed) await deferUnplanned(tx, runId);
  return true;
}

/** A refused key ends a run before the operations that wait for its bhav copies are planned: defers them again. */
async function deferUnplanned(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx.execute(sql`
    update ${runs} r set deferred = (
      select coalesce(jsonb_agg(t.target), '[]') from jsonb_array_elements(r.request -> 'targets') as t(target)
       where not exists (
         select from ${windows} w
          where w.run_id = r.id and w.operation = t.target ->> 'operation' and w.exchange = t.target ->> 'exchange'))
     where r.id = ${runId}`);
}

/**
 * Reads the deferred targets of a running run.
 *
 * @param lock whether its row is locked until the transaction ends, so that they are planned once.
 * @returns null if there are none.
 */
export async function readDeferred(db: NodePgDatabase, runId: number, lock: boolean) {
  const query = db
    .select({ request: sql<RunRequest>`${runs.request}`, targets: runs.deferred })
    .from(runs)
    .where(and(eq(runs.id, runId), eq(runs.state, 'running'), sql`${runs.deferred} <> '[]'::jsonb`));
  const [run] = await (lock ? query.for('update') : query);
  return run ?? null;
}

/** Leaves targets of a run to be planned later. */
export async function deferTargets(
  tx: NodePgDatabase,
  runId: number,
  targets: readonly Target[],
): Promise<void> {
  await tx.update(runs).set({ deferred: targets }).where(eq(runs.id, runId));
}

/**
 * Stores why a run cannot continue, plans no more of its windows, and pauses the other running runs that call the source
 * and have something left: one of which all windows have ended is about to end.
 */
export async function stopRuns(tx: NodePgDatabase, runId: number, error: string): Promise<void> {
  const openWindows = tx
    .select({ id: windows.id })
    .from(windows)
    .where(and(eq(windows.run_id, runs.id), isOpen()));
  // In the order of their ids, as everywhere.
  const running = await tx
    .select({ id: runs.id, isLeft: sql<boolean>`${runs.deferred} <> '[]'::jsonb or exists ${openWindows}` })
    .from(runs)
    .where(and(eq(runs.state, 'running'), callsSource()))
    .orderBy(asc(runs.id))
    .for('update');
  // One that the refusal of another call has paused stays as it is.
  await tx
    .update(runs)
    .set({ error, deferred: [] })
    .where(and(eq(runs.id, runId), eq(runs.state, 'running')));
  for (const { id, isLeft } of running) if (id !== runId && isLeft) await pauseRun(tx, id, error);
}

/** Whether the source has accepted the key since a run was started or resumed. */
export async function isKeyAccepted(db: NodePgDatabase, runId: number): Promise<boolean> {
  return (await db.$count(runs, and(eq(runs.id, runId), runs.is_key_accepted))) > 0;
}

/** Notes that the source accepts the key in a run. @returns true for the call that notes it first. */
export async function acceptKeyInRun(db: NodePgDatabase, runId: number): Promise<boolean> {
  const accepted = await db
    .update(runs)
    .set({ is_key_accepted: true })
    .where(and(eq(runs.id, runId), eq(runs.is_key_accepted, false)));
  return accepted.rowCount === 1;
}

/** How a run ends if its windows alone do not decide that. */
export interface RunEnd {
  /** With `failed`, `error` is set only if no window failed: a failed window says why itself. */
  readonly state: 'failed' | 'cancelled';
  readonly error: string;
}

const ENDED_RUN = { id: runs.id, kind: runs.kind, state: runs.state, from: runs.from_date, to: runs.to_date };

/** A run that has ended. */
export type EndedRun = NonNullable<Awaited<ReturnType<typeof finishRun>>>;

/**
 * Ends a run that has no open window left, and writes its totals.
 *
 * @returns the run if this call ended it, else null.
 */
export async function finishRun(db: NodePgDatabase, runId: number, end: RunEnd | null = null) {
  const total = db
    .select({
      ...WINDOW_TOTALS,
      failed: countWindows(windowsThatMay('reopen')).as('failed'),
      open: countWindows(isOpen()).as('open'),
    })
    .from(windows)
    .where(eq(windows.run_id, runId))
    .as('total');
  const state: RunAfter<'finish'> = end?.state ?? 'completed';
  const [ended] = await db
    .update(runs)
    .set({
      state:
        state === 'cancelled' ? state : sql`case when ${total.failed} > 0 then 'failed' else ${state} end`,
      requests: sql`${total.requests}`,
      bytes: sql`${total.bytes}`,
      ...forEachCount((name) => sql`${total[name]}`),
      error:
        end?.state === 'failed'
          ? sql`case when ${total.failed} > 0 then ${runs.error} else ${end.error} end`
          : end?.error,
      finished_at: now,
      follow_up: sql`case when ${runs.kind} = any(${sql.param(KINDS_WITHOUT_CALLS)}) then 'none' else 'due' end`,
    })
    .from(total)
    .where(
      and(eq(runs.id, runId), canBegin('finish'), sql`${runs.deferred} = '[]'::jsonb`, eq(total.open, 0)),
    )
    .returning(ENDED_RUN);
  return ended ?? null;
}

/** Ends a run that nobody works on any more, and its open windows, as cancelled. @returns as `finishRun`. */
export async function abandonRun(tx: NodePgDatabase, runId: number, reason: string) {
  const running = await tx
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.id, runId), canBegin('finish')))
    .for('update');
  if (running.length === 0) return null;
  await cancelWindows(tx, runId, reason);
  return finishRun(tx, runId, { state: 'cancelled', error: reason });
}

const isToFollowUp = inArray(runs.follow_up, ['due', 'night']);

/** Ended runs whose checks and alerts are still to be done, the oldest first; see `etl.runs.follow_up`. */
export function listRunsToFollowUp(db: NodePgDatabase) {
  return db
    .select({ id: runs.id, to: runs.to_date, tick: runs.tick, followUp: runs.follow_up })
    .from(runs)
    .where(isToFollowUp)
    .orderBy(asc(runs.id));
}

/** An ended run whose follow-up has begun. */
export type FollowedRun = NonNullable<Awaited<ReturnType<typeof beginFollowUp>>>;

/** Counts an attempt at a run's follow-up. @returns the run; null if the follow-up is no longer due. */
export async function beginFollowUp(db: NodePgDatabase, runId: number) {
  const [begun] = await db
    .update(runs)
    .set({ follow_up_attempts: sql`${runs.follow_up_attempts} + 1` })
    .where(and(eq(runs.id, runId), isToFollowUp))
    .returning({
      ...ENDED_RUN,
      request: sql<Partial<RunRequest>>`${runs.request}`,
      error: runs.error,
      attempt: runs.follow_up_attempts,
      tick: runs.tick,
      followUp: runs.follow_up,
    });
  return begun ?? null;
}

/** Records how a run's follow-up ended, unless the run was reopened meanwhile: its next end makes it due again. */
export async function endFollowUp(
  db: NodePgDatabase,
  { id, attempt }: { readonly id: number; readonly attempt: number },
  follow_up: 'night' | 'done' | 'failed',
): Promise<void> {
  await db
    .update(runs)
    .set({ follow_up })
    .where(and(eq(runs.id, id), isToFollowUp, eq(runs.follow_up_attempts, attempt)));
}

/**
 * The days that all nightly runs of a day are about, whether this one is the last of them that has ended, and whether
 * others are running. A paused one may stay so for good, and is not waited for.
 */
export async function readNightOfRun(db: NodePgDatabase, { id, to }: Pick<EndedRun, 'id' | 'to'>) {
  const { rows } = await db.execute<{ from: Day; to: Day; isLast: boolean; isOpen: boolean }>(sql`
    select min(night.from_date)::text as "from", max(night.to_date)::text as "to",
           not bool_or(
             night.state not in ('running', 'paused') and (night.finished_at, night.id) > (r.finished_at, r.id)
           ) as "isLast",
           bool_or(night.state = 'running') as "isOpen"
      from ${runs} night join ${runs} r on r.id = ${id}
     where night.kind = 'nightly' and night.to_date = ${to}`);
  return firstItem(rows);
}

/** How many of these ticks have a run. */
export async function countTicks(db: NodePgDatabase, ticks: readonly string[]): Promise<number> {
  return db.$count(runs, inArray(runs.tick, [...ticks]));
}

/** Deletes runs that ended more than so many days ago of which no window is left. @returns how many. */
export async function deleteOldRuns(db: NodePgDatabase, days: number): Promise<number> {
  return (await db.delete(runs).where(inArray(runs.id, selectOldRuns(db, days)))).rowCount ?? 0;
}
