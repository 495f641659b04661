import { limitHeapGrowthFor } from '../../core/heap-growth.ts';
import { endsWithin } from '../../core/waits.ts';
import { startDelivery } from '../alerts/send-alerts.ts';
import type { Context, WorkContext } from '../context.ts';
import { backoffMs } from '../policy/failure-policy.ts';
import { createSourceClock } from '../policy/quota.ts';
import { enqueueReopened, liftRateLimits } from '../queue/enqueue.ts';
import { WINDOW_QUEUES, type WindowJob, type WorkerSettings } from '../queue/queue.ts';
import { startChores } from './chores.ts';
import { handleWindowJob } from './handle-window-job.ts';
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
  limitHeapGrowthFor(0);
  const abort = new AbortController();
  // The budget may have calls left again: the limit may have been raised, or a new hour begun.
  await liftRateLimits(context);
  const chores = await startChores(context);
  // Both queues call the same source, so they share what is known about it.
  const sourceClock = createSourceClock(context);
  const storage = createStorage(context);
  let inProgress = 0;
  const workers = WINDOW_QUEUES.map((kind) => {
    const queue = queues.windows[kind];
    const windowContext = { ...context, storage, sourceClock, signal: abort.signal, queue, kind };
    return queues.work<WindowJob>(
      kind,
      async (job, token) => {
        inProgress += 1;
        return handleWindowJob(windowContext, job, token).finally(() => {
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
      chores.stop();
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
