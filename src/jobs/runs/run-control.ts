import { eachDay } from '../../core/days.ts';
import { requesterName } from '../../core/environment.ts';
import { unknownRunError, usageError } from '../../core/errors.ts';
import { transaction } from '../../load/database/transaction.ts';
import { allowKeyTrial } from '../../load/state/access-keys.ts';
import { writeCoverage } from '../../load/state/coverage.ts';
import type { RunRequest, RunState } from '../../load/state/run-request.ts';
import * as stored from '../../load/state/runs.ts';
import { insertWindows } from '../../load/state/windows/plan.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context, QueueContext } from '../context.ts';
import { announceRun } from '../worker/enqueue.ts';
import { keyHash } from '../worker/quota.ts';
import { advanceRun } from './advance.ts';
import { planRun, type RunPlan } from './plan-run.ts';

interface StartOptions {
  /** Unique name of a schedule's tick; a second run of the same tick is not made. */
  readonly tick?: string;
  readonly requestedBy?: string;
}

/**
 * Plans a request, writes the run with all its windows in one transaction and enqueues them.
 *
 * @returns the run's number, or null when a run of the same tick exists already.
 */
export async function startRun(
  context: QueueContext,
  request: RunRequest,
  options: StartOptions = {},
): Promise<number | null> {
  if (options.tick === undefined) {
    // A night may be started by cron, and then nobody has mended the key.
    if (request.kind !== 'nightly') await allowRefusedKey(context);
    await context.queues.resume();
  }
  const plan = await planRun(context, request);
  const runId = await insertRun(context, request, plan, options);
  if (runId === null) return null;
  await writeHolidays(context, request, runId);
  await announceRun(context, runId);
  // A run with nothing to ask is over at once.
  await advanceRun(context, runId);
  return runId;
}

/** Weekdays on which the exchange was closed are known without asking. */
async function writeHolidays({ db, calendar }: Context, request: RunRequest, runId: number): Promise<void> {
  if (request.kind === 'preview') return;
  for (const { operation, exchange, from, to } of request.targets) {
    const policy = operationNamed(operation).windows.per;
    if (policy !== 'range' && policy !== 'session') continue;
    const holidays = eachDay(from, to).filter((day) => calendar.kindOf(exchange, day) === 'holiday');
    await writeCoverage(db.drizzle, {
      operation,
      exchange,
      runId,
      windowId: null,
      coverage: holidays.map((day) => ({ day, instrument: '', variant: '', state: 'holiday', records: 0 })),
    });
  }
}

/** A person asks for work: a refused key gets one more try. */
async function allowRefusedKey({ config, db, log }: Context): Promise<void> {
  const wasRefused = await allowKeyTrial(db.drizzle, keyHash(config.EOD_ACCESS_KEY ?? ''));
  if (wasRefused) log.warn('the access key was refused before; trying it once more');
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
    // The number is taken by the run that an earlier try has written, or the tick by another run.
    if (inserted === null) return tick === undefined ? id : null;
    await insertWindows(tx, id, plan.windows);
    return id;
  });
}

/** State of a run. @throws PipelineError `usage` when there is no such run. */
export async function runState({ db }: Context, runId: number): Promise<RunState> {
  const found = await stored.readRun(db.drizzle, runId);
  if (found === null) throw unknownRunError(runId);
  return found.state;
}

/** Calls a run off: what has not ended becomes `cancelled`. What is loaded stays. */
export async function cancelRun(context: Context, runId: number): Promise<void> {
  const cancelled = await transaction(context.db, (tx) => stored.cancelRun(tx, runId, 'cancelled by hand'));
  if (!cancelled) throw usageError(`run ${runId} has ended (${await runState(context, runId)})`);
}

/**
 * Goes on with a run: what is left of a paused or interrupted one, what failed or was blocked of
 * a failed one.
 *
 * @throws PipelineError `usage` when nothing is left to do.
 */
export async function resumeRun(context: QueueContext, runId: number): Promise<void> {
  await reopenRun(context, runId, () => allowRefusedKey(context));
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
  await checkNotEnded(context, runId);
  await before();
  const reopened = await transaction(context.db, (tx) => stored.reopenRun(tx, runId));
  if (!reopened) await checkNotEnded(context, runId);
}

async function checkNotEnded(context: Context, runId: number): Promise<void> {
  const found = await runState(context, runId);
  if (found === 'completed') throw usageError(`run ${runId} is complete: nothing is left to do`);
  if (found === 'cancelled') throw usageError(`run ${runId} was cancelled; start a new one instead`);
}
