import { and, asc, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day } from '../../core/days.ts';
import type { RunKind, RunRequest, RunState, Target } from './run-request.ts';
import { runs, windows } from './schema/work.ts';
import { asksSource, cancelWindows, reopenWindows, restartPendingWindows } from './windows.ts';

/**
 * What may become of a run. Every statement below that changes a state names its line here and asks
 * in SQL for one of the states the line begins at: from any other state it changes nothing.
 *
 * A run begins as `running`.
 */
export const RUN_TRANSITIONS = {
  pause: { from: ['running'], to: ['paused'], when: 'No worker starts another window of it.' },
  finish: {
    from: ['running'],
    to: ['completed', 'failed', 'cancelled'],
    when: 'No window is open any more. `cancelled`: an import that did not get to all of its files.',
  },
  cancel: {
    from: ['running', 'paused'],
    to: ['cancelled'],
    when: 'Called off by hand; what is open of it ends with it.',
  },
  reopen: {
    from: ['running', 'paused', 'failed'],
    to: ['running'],
    when: 'Resumed; from `running` where the process that worked on it is gone.',
  },
} as const;

/** Is the run in a state this transition begins at? */
function may(transition: keyof typeof RUN_TRANSITIONS): SQL {
  return inArray(runs.state, [...RUN_TRANSITIONS[transition].from]);
}

const now = sql`clock_timestamp()`;

/**
 * A number for a run that is yet to be written. Where the connection breaks while it is being written
 * nobody can tell whether it was: asked for again under its number, it is not made twice.
 */
export async function reserveRunId(db: NodePgDatabase): Promise<number> {
  const next = await db.execute<{ id: number }>(
    sql`select nextval(pg_get_serial_sequence('etl.runs', 'id'))::int as id`,
  );
  return (next.rows[0] as { id: number }).id;
}

/** A run to be written. */
interface NewRun {
  /** From `reserveRunId`. */
  readonly id?: number | undefined;
  readonly kind: RunKind;
  readonly requestedBy: string;
  /** What was asked, as data. */
  readonly request: object;
  readonly from: Day;
  readonly to: Day;
  /** Unique name of a schedule's tick. */
  readonly tick?: string | undefined;
  readonly deferred?: readonly Target[];
}

/** @returns its number, or null when the same run exists already, by its number or its tick. */
export async function insertRun(
  db: NodePgDatabase,
  { id, kind, requestedBy, request, from, to, tick, deferred = [] }: NewRun,
): Promise<number | null> {
  const inserted = await db
    .insert(runs)
    .values({
      ...(id === undefined ? {} : { id }),
      kind,
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

/** Takes a run back that has no windows. */
export async function deleteRun(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx.delete(runs).where(eq(runs.id, runId));
}

/** Sets the range of a run to that of its windows. @returns false when it has none. */
export async function setRunRange(db: NodePgDatabase, runId: number): Promise<boolean> {
  const range = db
    .select({
      first: sql`min(${windows.from_date})`.as('first'),
      last: sql`max(${windows.to_date})`.as('last'),
    })
    .from(windows)
    .where(eq(windows.run_id, runId))
    .as('range');
  const set = await db
    .update(runs)
    .set({ from_date: sql`${range.first}`, to_date: sql`${range.last}` })
    .from(range)
    .where(and(eq(runs.id, runId), sql`${range.first} is not null`));
  return set.rowCount === 1;
}

/** State of a run, or null when there is no such run. */
export async function readRunState(db: NodePgDatabase, runId: number): Promise<RunState | null> {
  const found = await db.select({ state: runs.state }).from(runs).where(eq(runs.id, runId));
  return found[0]?.state ?? null;
}

/** What a run was asked to do, as it was kept with it; null when there is no such run. */
export async function readRunRequest(db: NodePgDatabase, runId: number): Promise<unknown> {
  const [run] = await db.select({ request: runs.request }).from(runs).where(eq(runs.id, runId));
  return run?.request ?? null;
}

/** Runs of every kind that are running, oldest first. */
export async function runningRuns(db: NodePgDatabase, kind?: RunKind): Promise<number[]> {
  const found = await db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.state, 'running'), kind === undefined ? undefined : eq(runs.kind, kind)))
    .orderBy(asc(runs.id));
  return found.map((run) => run.id);
}

/** @returns false when it was not running. */
export async function pauseRun(db: NodePgDatabase, runId: number): Promise<boolean> {
  const paused = await db
    .update(runs)
    .set({ state: 'paused' })
    .where(and(eq(runs.id, runId), may('pause')));
  return paused.rowCount === 1;
}

/** Cancels a run and what is open of it. @returns false when it had ended already. */
export async function cancelRun(tx: NodePgDatabase, runId: number, reason: string): Promise<boolean> {
  // The run first: its lock waits for whoever is planning more windows of it, so that none is missed.
  const cancelled = await tx
    .update(runs)
    .set({ state: 'cancelled', deferred: [], finished_at: now })
    .where(and(eq(runs.id, runId), may('cancel')));
  if (cancelled.rowCount === 0) return false;
  await cancelWindows(tx, runId, reason);
  return true;
}

/**
 * Lets a run go on: what is left of a paused or interrupted one, what failed or was blocked of a
 * failed one.
 *
 * @returns false when nothing is left to do: it is complete or cancelled.
 */
export async function reopenRun(tx: NodePgDatabase, runId: number): Promise<boolean> {
  const found = await tx
    .select({ state: runs.state })
    .from(runs)
    .where(and(eq(runs.id, runId), may('reopen')))
    .for('update');
  const run = found[0];
  if (run === undefined) return false;
  await tx
    .update(runs)
    .set({ state: 'running', error: null, finished_at: null })
    .where(and(eq(runs.id, runId), may('reopen')));
  if (run.state === 'failed') {
    await reopenWindows(tx, runId);
    await deferUnplanned(tx, runId);
  }
  // However long ago it was first tried.
  await restartPendingWindows(tx, runId);
  return true;
}

/** A refused key ends a run before what waits for its bhav copies is planned: that is left to do too. */
async function deferUnplanned(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx.execute(sql`
    update ${runs} r set deferred = (
      select coalesce(jsonb_agg(t.target), '[]') from jsonb_array_elements(r.request -> 'targets') as t(target)
       where not exists (
         select from ${windows} w
          where w.run_id = r.id and w.operation = t.target ->> 'operation' and w.exchange = t.target ->> 'exchange'))
     where r.id = ${runId}`);
}

/** What waited in a run until its bhav copies are in. */
interface Deferred {
  readonly request: RunRequest;
  readonly targets: readonly Target[];
}

/**
 * Takes the deferred targets of a running run, to be planned in the same transaction: its lock makes
 * it happen once.
 *
 * @returns null when there are none.
 */
export async function takeDeferred(tx: NodePgDatabase, runId: number): Promise<Deferred | null> {
  const found = await tx
    .select({
      request: sql<RunRequest>`${runs.request}`,
      targets: runs.deferred,
    })
    .from(runs)
    .where(and(eq(runs.id, runId), eq(runs.state, 'running'), sql`${runs.deferred} <> '[]'::jsonb`))
    .for('update');
  const run = found[0];
  if (run === undefined) return null;
  await tx.update(runs).set({ deferred: [] }).where(eq(runs.id, runId));
  return run;
}

/** Notes with every running run that asks the source why it cannot go on; nothing more of it is planned. */
export async function stopPlanning(tx: NodePgDatabase, error: string): Promise<void> {
  await tx
    .update(runs)
    .set({ error, deferred: [] })
    .where(and(eq(runs.state, 'running'), asksSource()));
}

/** A run that has just ended. */
export interface EndedRun {
  readonly id: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly from: Day;
  readonly to: Day;
}

/** How a run ends where its windows do not say it all. */
export interface RunEnd {
  /** `failed`: unless a window failed, which then says why. */
  readonly state: 'failed' | 'cancelled';
  readonly error: string;
}

/**
 * Writes the totals and the end of a run that has no open window left.
 *
 * @returns the run when it was this call that ended it, else null.
 */
export async function finishRun(
  db: NodePgDatabase,
  runId: number,
  end: RunEnd | null = null,
): Promise<EndedRun | null> {
  const finished = await db.execute<EndedRun & Record<string, unknown>>(sql`
    update ${runs} r set
      state = case when ${end?.state === 'cancelled'} then 'cancelled'
                   when t.bad > 0 or ${end?.state === 'failed'} then 'failed' else 'completed' end,
      error = case when ${end?.state === 'cancelled'} or (t.bad = 0 and ${end?.state === 'failed'})
                   then ${end?.error ?? null} else r.error end,
      requests = t.requests, bytes = t.bytes, fetched = t.fetched, inserted = t.inserted, updated = t.updated,
      unchanged = t.unchanged, stale = t.stale, duplicate = t.duplicate, rejected = t.rejected,
      withdrawn = t.withdrawn, finished_at = ${now}
    from (
      select count(*) filter (where state in ('failed', 'blocked')) as bad,
        coalesce(sum(requests), 0) as requests, coalesce(sum(bytes), 0) as bytes,
        coalesce(sum(fetched), 0) as fetched, coalesce(sum(inserted), 0) as inserted,
        coalesce(sum(updated), 0) as updated, coalesce(sum(unchanged), 0) as unchanged,
        coalesce(sum(stale), 0) as stale, coalesce(sum(duplicate), 0) as duplicate,
        coalesce(sum(rejected), 0) as rejected, coalesce(sum(withdrawn), 0) as withdrawn
      from ${windows} where run_id = ${runId}) t
    where r.id = ${runId} and r.state in ${[...RUN_TRANSITIONS.finish.from]} and r.deferred = '[]'::jsonb
      and not exists (select from ${windows} where run_id = ${runId} and state in ('pending', 'running'))
    returning r.id::int, r.kind, r.state, r.from_date::text as "from", r.to_date::text as "to"`);
  return finished.rows[0] ?? null;
}

/** Ends a running run that is worked on no longer, as cancelled, and what is open of it. */
export async function abandonRun(
  tx: NodePgDatabase,
  runId: number,
  reason: string,
): Promise<EndedRun | null> {
  const running = await tx
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.id, runId), may('finish')))
    .for('update');
  if (running.length === 0) return null;
  await cancelWindows(tx, runId, reason);
  return finishRun(tx, runId, { state: 'cancelled', error: reason });
}
