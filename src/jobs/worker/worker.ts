import type { Job } from 'bullmq';
import { limitHeapGrowth } from '../../core/heap-growth.ts';
import { endsWithin } from '../../core/waits.ts';
import { type CallLimit, readHour } from '../../load/state/source/call-budget.ts';
import { startDelivery } from '../alerts/send-alerts.ts';
import type { Context, WorkContext } from '../context.ts';
import { backoffMs, decideLocalFailure } from '../policy/failure-policy.ts';
import { callLimitOf, callsOf, createSourceClock } from '../policy/quota.ts';
import { enqueueReopened, liftRateLimits } from '../queue/enqueue.ts';
import { WINDOW_QUEUES, type WindowJob, type WorkerSettings } from '../queue/queue.ts';
import { advanceRun } from '../runs/advance.ts';
import type { WorkerContext } from './claim-call.ts';
import { handToQueue } from './hand-to-queue.ts';
import { processWindow, type QueueVerdict } from './process-window.ts';
import { startRequeueing } from './requeue.ts';
import { createStorage } from './storage.ts';

/** How long windows in progress may take to finish after a stop; then they are aborted. */
const GRACE_MS = 6_500;

/** How long it may take to roll back aborted windows and to close the connections to the queue. */
const END_MS = 1_500;

export interface RunningWorker {
  /**
   * Takes no new window, waits a few seconds for those in progress, then rolls back the others and puts them into the
   * queue again. Takes eight seconds at most, also if a server no longer responds.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Starts working on windows, after enqueueing the open windows that the queue has lost. */
export async function startWorker(opened: WorkContext): Promise<RunningWorker> {
  // Without retry, because the failure policy postpones a window when Postgres cannot be reached.
  const context = { ...opened, db: opened.db.withoutRetry };
  const { config, queues } = context;
  // 282 MB instead of 302 with 125 % (bench/README.md); with less, a worker collects at every other window, which takes
  // a quarter of its time.
  limitHeapGrowth(110);
  const abort = new AbortController();
  // The budget may have calls left again: the limit may have been raised, or a new hour begun.
  await liftRateLimits(context);
  const requeueing = await startRequeueing(context);
  // Both queues call the same source, so they share what is known about it.
  const sourceClock = createSourceClock(context);
  const storage = createStorage(context);
  let inProgress = 0;
  const workers = WINDOW_QUEUES.map((kind) => {
    const shared = { storage, sourceClock, signal: abort.signal };
    const own = { ...context, ...shared, queue: queues.windows[kind], kind };
    return queues.work<WindowJob>(
      kind,
      async (job, token) => {
        inProgress += 1;
        return handleWindowJob(own, job, token).finally(() => {
          inProgress -= 1;
        });
      },
      workerSettings(context, config.EOD_CONCURRENCY),
      (job, isLoaded) => {
        // A window that failed may have been opened again while the queue still had its job.
        if (isLoaded !== true) void enqueueReopened(context, job);
      },
    );
  });
  const delivery = startDelivery(context);
  return {
    async stop(graceMs = GRACE_MS) {
      requeueing.stop();
      const closed = Promise.all([...workers.map((worker) => worker.close()), delivery.stop()]);
      // With a server that is unreachable or silent this never ends. It can be left unfinished: the jobs stall, and
      // other workers take them.
      const atOnceMs = Math.min(graceMs, END_MS);
      if ((await endsWithin(closed, atOnceMs)) || inProgress === 0) return;
      if (await endsWithin(closed, graceMs - atOnceMs)) return;
      abort.abort();
      await endsWithin(closed, END_MS);
    },
  };
}

/** How often a worker looks whether a rate limit of its queue has been lifted. */
const LIMIT_RECHECK_MS = 500;

/** The BullMQ settings of every worker: jobs of workers that were killed are started again after EOD_STALL_MS. */
export function workerSettings({ config }: Pick<Context, 'config'>, concurrency: number): WorkerSettings {
  return {
    concurrency,
    lockDuration: config.EOD_STALL_MS,
    stalledInterval: Math.max(500, Math.floor(config.EOD_STALL_MS / 2)),
    // Lost workers are counted with the window: see MAX_LOST_WORKERS.
    maxStalledCount: 1_000_000,
    // For jobs whose own options the queue has lost: no finished job may keep the id of its window.
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
    // By default BullMQ waits 15 s after a broken connection.
    runRetryDelay: 1_000,
    // BullMQ follows a rate limit set by hand (for the clock hour) only if it has a limiter.
    limiter: { max: 1_000_000, duration: 1_000 },
    // By default BullMQ looks only every 30 s whether a rate limit has been lifted.
    maximumRateLimitDelay: LIMIT_RECHECK_MS,
    settings: {
      // Used only for errors of the queue itself; the failure policy sets all other pauses.
      backoffStrategy: (attempt) => backoffMs(attempt ?? 1, config.EOD_BACKOFF_MS, Math.random()),
    },
  };
}

/**
 * Handles the job of a window: works on the window, advances the runs of which windows have ended, and instructs BullMQ
 * what to do with the job.
 *
 * @returns whether the window is loaded.
 */
async function handleWindowJob(
  context: WorkerContext,
  job: Job<WindowJob>,
  token: string | undefined,
): Promise<boolean> {
  const { verdict, runs, isLoaded } = await processWindow(context, job.data);
  const advanced = await advanceRuns(context, runs);
  const reported = verdict ?? advanced;
  if (reported !== undefined) await instructQueue(context, job, token, reported);
  return isLoaded;
}

/** @returns what BullMQ is to do if a run could not be advanced: its job is tried again, and finds its window ended. */
async function advanceRuns(
  context: WorkerContext,
  runs: readonly number[],
): Promise<QueueVerdict | undefined> {
  try {
    for (const run of runs) await advanceRun(context, run);
    return undefined;
  } catch (error) {
    const action = decideLocalFailure(error);
    context.log.warn({ runs, err: error, action }, 'could not advance the run; it is tried again');
    return { action, error };
  }
}

async function instructQueue(
  context: WorkerContext,
  job: Job<WindowJob>,
  token: string | undefined,
  { action, error, isForBudget = false }: QueueVerdict,
): Promise<never> {
  const { queue, config, clock, sourceClock } = context;
  if (action.act === 'rate_limit') await queue.rateLimit(Math.max(1, Math.ceil(action.delayMs)));
  if (isForBudget) await liftNeedlessLimit(context, callLimitOf(config, clock, sourceClock));
  return handToQueue(job, token, action, error);
}

/**
 * Lifts a rate limit that was set because the hour had no calls left, if it has some by now: the call that tried the
 * hour may have got its response since the claim, and then the limit that it has lifted was set again.
 */
async function liftNeedlessLimit({ db, queue, kind }: WorkerContext, callLimit: CallLimit): Promise<void> {
  const hour = await readHour(db.drizzle, callLimit).catch(() => null);
  if (hour !== null && callsOf(kind, callLimit, hour).left > 0) await queue.removeRateLimitKey();
}
