import { hostname, userInfo } from 'node:os';
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { eachDay } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { drizzleTransaction } from '../../load/database/transaction.ts';
import { writeCoverage } from '../../load/state/coverage.ts';
import { runs, windows } from '../../load/state/schema/work.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context, QueueContext } from '../context.ts';
import { trustKeyAgain } from '../worker/access-key.ts';
import { announceRun } from '../worker/enqueue.ts';
import { keyHash } from '../worker/quota.ts';
import { advanceRun } from './advance.ts';
import { planRun, type RunPlan } from './planning.ts';
import type { RunRequest, RunState } from './request.ts';
import { insertWindows } from './window-store.ts';

export interface StartOptions {
  /** Unique name of a schedule's tick; a second run of the same tick is not made. */
  readonly tick?: string;
  /** From `reserveRunId`: asked for again under this number, the run is made only once. Not with a tick. */
  readonly id?: number;
  readonly requestedBy?: string;
}

/**
 * A number for a run that is yet to be written. Where the connection breaks while it is being written
 * nobody can tell whether it was: asked for again under its number, it is not made twice.
 */
export async function reserveRunId({ db }: Pick<Context, 'db'>): Promise<number> {
  const next = await db.pool.query<{ id: number }>(
    "select nextval(pg_get_serial_sequence('etl.runs', 'id'))::int as id",
  );
  return (next.rows[0] as { id: number }).id;
}

/**
 * Plans a request, writes the run with all its windows in one transaction and enqueues them.
 *
 * May be tried again from its start when Postgres was away, given the number of the run or a tick.
 *
 * @returns the run's number, or null when a run of the same tick exists already.
 */
export async function startRun(
  context: QueueContext,
  request: RunRequest,
  options: StartOptions = {},
): Promise<number | null> {
  if (options.tick === undefined) {
    await trustKey(context);
    await context.queues.resume();
  }
  const plan = await planRun(context, request);
  const runId = await insertRun(context, request, plan, options);
  if (runId === null) return null;
  await noteHolidays(context, request, runId);
  await announceRun(context, runId);
  // A run with nothing to ask is over at once.
  await advanceRun(context, runId);
  return runId;
}

/** Weekdays on which the exchange was closed are known without asking. */
async function noteHolidays({ db, calendar }: Context, request: RunRequest, runId: number): Promise<void> {
  for (const { operation, exchange, from, to } of request.targets) {
    const policy = operationNamed(operation).windows.per;
    if (policy !== 'range' && policy !== 'session') continue;
    const holidays = eachDay(from, to).filter((day) => calendar.kindOf(exchange, day) === 'holiday');
    await writeCoverage(db.drizzle, {
      operation,
      exchange,
      runId,
      windowId: null,
      coverage: holidays.map((day) => ({ day, instrument: '', part: '', state: 'holiday', records: 0 })),
    });
  }
}

/** A person asks for work: a refused key gets one more try. */
async function trustKey({ config, db, log }: Context): Promise<void> {
  const wasRefused = await trustKeyAgain(db.pool, keyHash(config.EOD_ACCESS_KEY ?? ''));
  if (wasRefused) log.warn('the access key was refused before; trying it once more');
}

async function insertRun(
  { db }: Context,
  request: RunRequest,
  plan: RunPlan,
  options: StartOptions,
): Promise<number | null> {
  const days = request.targets.flatMap((target) => [target.from, target.to]).sort();
  return drizzleTransaction(db, async (tx) => {
    const inserted = await tx
      .insert(runs)
      .values({
        ...(options.id === undefined ? {} : { id: options.id }),
        kind: request.kind,
        requested_by: options.requestedBy ?? whoAsks(),
        request,
        from_date: days[0] as string,
        to_date: days.at(-1) as string,
        tick: options.tick ?? null,
        deferred: plan.deferred,
      })
      .onConflictDoNothing()
      .returning({ id: runs.id });
    const runId = inserted[0]?.id;
    // What stands in the way is a run of the same tick, or the one an earlier try has written.
    if (runId === undefined) return options.id ?? null;
    await insertWindows(tx, runId, plan.windows);
    return runId;
  });
}

/** For people; an account without a name, as containers have them, is known by its number. */
export function whoAsks(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}

/** State of a run. @throws PipelineError `usage` when there is no such run. */
export async function runState({ db }: Context, runId: number): Promise<RunState> {
  const found = await db.drizzle.select({ state: runs.state }).from(runs).where(eq(runs.id, runId));
  const run = found[0];
  if (run === undefined) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
  return run.state as RunState;
}

/** Stops a running run so that no worker starts another window of it; `resumeRun` goes on. */
export async function pauseRun({ db }: Context, runId: number): Promise<void> {
  await db.drizzle
    .update(runs)
    .set({ state: 'paused' })
    .where(and(eq(runs.id, runId), eq(runs.state, 'running')));
}

/** Calls a run off: what has not ended becomes `cancelled`. What is loaded stays. */
export async function cancelRun(context: Context, runId: number): Promise<void> {
  const state = await runState(context, runId);
  if (state !== 'running' && state !== 'paused') throw usageError(`run ${runId} has ended (${state})`);
  await drizzleTransaction(context.db, async (tx) => {
    // The run first: its lock waits for whoever is planning more windows of it, so that none is missed.
    await tx
      .update(runs)
      .set({ state: 'cancelled', deferred: [], finished_at: sql`clock_timestamp()` })
      .where(eq(runs.id, runId));
    await tx
      .update(windows)
      .set({ state: 'cancelled', error: 'cancelled by hand', finished_at: sql`clock_timestamp()` })
      .where(and(eq(windows.run_id, runId), inArray(windows.state, ['pending', 'running'])));
  });
}

/**
 * Goes on with a run: what is left of a paused or interrupted one, what failed or was blocked of
 * a failed one.
 *
 * @throws PipelineError `usage` when nothing is left to do.
 */
export async function resumeRun(context: QueueContext, runId: number): Promise<void> {
  await reopenRun(context, runId, () => trustKey(context));
  await announceRun(context, runId);
  // Last, because jobs of these windows may still wait in a stopped queue: taken on before the windows
  // were open again, they would be done with, and nobody would come for the windows.
  await context.queues.resume();
  await advanceRun(context, runId);
}

/**
 * Opens a run and what failed of it again, without asking anybody to work on it.
 *
 * @param before done once it is known that there is something to do.
 * @throws PipelineError `usage` when nothing is left to do.
 */
export async function reopenRun(
  context: Context,
  runId: number,
  before: () => Promise<void> = async () => undefined,
): Promise<void> {
  const state = await runState(context, runId);
  if (state === 'completed') throw usageError(`run ${runId} is complete: nothing is left to do`);
  if (state === 'cancelled') throw usageError(`run ${runId} was cancelled; start a new one instead`);
  await before();
  await drizzleTransaction(context.db, async (tx) => {
    await tx.update(runs).set({ state: 'running', error: null, finished_at: null }).where(eq(runs.id, runId));
    if (state === 'failed') {
      await tx
        .update(windows)
        .set({
          ...{ state: 'pending', error: null, diagnostic: null, finished_at: null },
          ...{ fetched: 0, rejected: 0 },
        })
        .where(and(eq(windows.run_id, runId), inArray(windows.state, ['failed', 'blocked'])));
      // A refused key ends a run before what waits for its bhav copies is planned: that is left to do too.
      await tx.execute(sql`
        update etl.runs r set deferred = (
          select coalesce(jsonb_agg(t.target), '[]') from jsonb_array_elements(r.request -> 'targets') as t(target)
           where not exists (
             select from etl.windows w
              where w.run_id = r.id and w.operation = t.target ->> 'operation' and w.exchange = t.target ->> 'exchange'))
         where r.id = ${runId}`);
    }
    // However long ago it was first tried: the source's time to get ready begins anew.
    await tx
      .update(windows)
      .set({ started_at: null })
      .where(and(eq(windows.run_id, runId), eq(windows.state, 'pending')));
  });
}

/** Runs that are not over, oldest first. */
export async function openRuns({ db }: Context): Promise<number[]> {
  const found = await db.drizzle
    .select({ id: runs.id })
    .from(runs)
    .where(eq(runs.state, 'running'))
    .orderBy(asc(runs.id));
  return found.map((run) => run.id);
}
