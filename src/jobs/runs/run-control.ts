import { eachDay } from '../../core/days.ts';
import { requesterName } from '../../core/environment.ts';
import { unknownRunError, usageError } from '../../core/errors.ts';
import { operationNamed } from '../../operations/registry.ts';
import { transaction } from '../../postgres/transaction.ts';
import { writeCoverage } from '../../state/coverage/coverage.ts';
import { takePosition } from '../../state/position-sql.ts';
import type { RunRequest, RunState } from '../../state/request.ts';
import * as stored from '../../state/runs/runs.ts';
import { openHours } from '../../state/source/call-budget.ts';
import { insertWindows } from '../../state/windows/plan.ts';
import type { Context, QueueContext } from '../context.ts';
import { keyHash } from '../policy/quota.ts';
import { enqueueRun, liftRateLimits } from '../queue/enqueue.ts';
import { advanceRun } from './advance.ts';
import { planRun, type RunPlan } from './plan-run.ts';

interface StartOptions {
  /** Unique name of a schedule's tick, so that it starts only one run. */
  readonly tick?: string;
  readonly requestedBy?: string;
}

/**
 * Plans a request, writes the run with all its windows in one transaction and enqueues them.
 *
 * @returns the run's number, or null if the tick has a run already.
 */
export async function startRun(
  context: QueueContext,
  request: RunRequest,
  options: StartOptions = {},
): Promise<number | null> {
  const plan = await planRun(context, request);
  const runId = await insertRun(context, request, plan, options);
  if (runId === null) return null;
  await writeHolidays(context, request, runId);
  await enqueueRun(context, runId);
  // A run with nothing to request ends at once.
  await advanceRun(context, runId);
  return runId;
}

/** Records holidays in the coverage; they need no request. */
async function writeHolidays({ db, calendar }: Context, request: RunRequest, runId: number): Promise<void> {
  const position = await takePosition(db.drizzle);
  for (const { operation, exchange, from, to } of request.targets) {
    const policy = operationNamed(operation).windows.per;
    if (policy !== 'range' && policy !== 'session') continue;
    const holidays = eachDay(from, to).filter((day) => calendar.kindOf(exchange, day) === 'holiday');
    await writeCoverage(db.drizzle, {
      operation,
      exchange,
      runId,
      windowId: null,
      position,
      coverage: holidays.map((day) => ({ day, instrument: '', variant: '', state: 'holiday', records: 0 })),
    });
  }
}

async function insertRun(
  context: Context,
  request: RunRequest,
  plan: RunPlan,
  options: StartOptions,
): Promise<number | null> {
  const days = request.targets.flatMap((target) => [target.from, target.to]).sort();
  const { tick } = options;
  const id = await stored.reserveRunId(context.db.drizzle);
  return transaction(context.db, async (tx) => {
    const inserted = await stored.insertRun(tx, {
      id,
      kind: request.kind,
      requestedBy: options.requestedBy ?? requesterName(),
      request,
      from: days[0] as string,
      to: days.at(-1) as string,
      tick,
      deferred: plan.deferred,
    });
    // Either a try whose response was lost has written the run, or the tick has another run.
    if (inserted === null) return tick === undefined ? id : null;
    await insertWindows(tx, id, plan.windows);
    return id;
  });
}

/** Reads the state of a run. @throws PipelineError `usage` if there is no such run. */
export async function runState({ db }: Context, runId: number): Promise<RunState> {
  const run = await stored.readRun(db.drizzle, runId);
  if (run === null) throw unknownRunError(runId);
  return run.state;
}

/**
 * Cancels a run: its open windows become `cancelled`, and what is loaded stays.
 *
 * @throws PipelineError `usage` if it has ended.
 */
export async function cancelRun(context: Context, runId: number): Promise<void> {
  const cancelled = await transaction(context.db, (tx) => stored.cancelRun(tx, runId, 'cancelled by hand'));
  if (!cancelled) throw usageError(`run ${runId} has ended (${await runState(context, runId)})`);
}

/**
 * Resumes a run: the open windows of a paused or interrupted one, the failed and blocked windows of a failed one.
 *
 * @throws PipelineError `usage` if nothing is left to do.
 */
export async function resumeRun(context: QueueContext, runId: number): Promise<void> {
  await reopenRun(context, runId);
  // A person requests it now: the next call shows whether the source takes calls again.
  await openHours(context.db.drizzle, keyHash(context.config.EOD_ACCESS_KEY ?? ''));
  await enqueueRun(context, runId);
  await liftRateLimits(context);
  await advanceRun(context, runId);
}

/**
 * Reopens a run and its failed windows without enqueueing them.
 *
 * @throws PipelineError `usage` if nothing is left to do.
 */
export async function reopenRun(context: Context, runId: number): Promise<void> {
  const reopened = await transaction(context.db, (tx) => stored.reopenRun(tx, runId));
  if (!reopened) await checkNotEnded(context, runId);
}

async function checkNotEnded(context: Context, runId: number): Promise<void> {
  const state = await runState(context, runId);
  if (state === 'completed') throw usageError(`run ${runId} is complete: nothing is left to do`);
  if (state === 'cancelled') throw usageError(`run ${runId} was cancelled; start a new one instead`);
}
