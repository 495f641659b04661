import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { deliverAlerts } from '../alerts/send-alerts.ts';
import type { Context, WorkContext } from '../context.ts';
import { createBreaker } from './breaker.ts';
import { backoffMs } from './failure-policy.ts';
import { processWindow } from './process-window.ts';
import { type JobWorker, WINDOW_QUEUES, type WindowJob, type WorkerSettings } from './queue.ts';
import { createSourceClock } from './quota.ts';
import { startRequeueing } from './requeue.ts';

/** How often undelivered alerts are sent again. */
const ALERTS_MS = 60_000;

/** How long windows in progress may take to finish after a stop; then they are aborted. */
const GRACE_MS = 7_000;

/** How long the rollback of aborted windows may take. */
const ROLL_BACK_MS = 2_000;

export interface RunningWorker {
  /**
   * Takes no new window, waits a few seconds for those in progress, then rolls back the others and puts them into the
   * queue again. Takes ten seconds at most.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Starts working on windows, after enqueueing the open windows that the queue has lost. */
export async function startWorker(opened: WorkContext): Promise<RunningWorker> {
  // Without retry, because the failure policy postpones a window when Postgres cannot be reached.
  const context = { ...opened, db: opened.db.withoutRetry };
  const { config, queues } = context;
  limitHeapGrowth();
  const abort = new AbortController();
  // The budget may have calls left again: the limit may have been raised, or a new hour begun.
  await Promise.all(WINDOW_QUEUES.map((kind) => queues.windows[kind].removeRateLimitKey())).catch((error) =>
    context.log.warn({ err: error }, 'could not lift the rate limit of the queue; it ends within a minute'),
  );
  const requeueing = await startRequeueing(context);
  // Both queues call the same source, so they share what is known about it.
  // By a clock that nobody sets: the length of an outage must not change with the time of day.
  const breaker = createBreaker({ now: () => performance.now() });
  const sourceClock = createSourceClock(context);
  const workers = WINDOW_QUEUES.map((kind) => {
    const own = { ...context, queue: queues.windows[kind], kind, breaker, sourceClock, signal: abort.signal };
    return queues.work<WindowJob>(
      kind,
      (job, token) => processWindow(own, job, token),
      workerSettings(context, config.EOD_CONCURRENCY),
    );
  });
  const stopSending = new AbortController();
  let sending = deliverAlerts(context, stopSending.signal);
  const alertTimer = setInterval(() => {
    sending = deliverAlerts(context, stopSending.signal);
  }, ALERTS_MS);
  alertTimer.unref();
  return {
    async stop(graceMs = GRACE_MS) {
      requeueing.stop();
      clearInterval(alertTimer);
      stopSending.abort();
      await Promise.all([closeWithin(workers, graceMs, abort), sending]);
    },
  };
}

/** The BullMQ settings of every worker: jobs of workers that were killed are started again after EOD_STALL_MS. */
export function workerSettings({ config }: Pick<Context, 'config'>, concurrency: number): WorkerSettings {
  return {
    concurrency,
    lockDuration: config.EOD_STALL_MS,
    stalledInterval: Math.max(500, Math.floor(config.EOD_STALL_MS / 2)),
    // Lost workers are counted with the window: see MAX_LOST_WORKERS.
    maxStalledCount: 1_000_000,
    // By default BullMQ waits 15 s after a broken connection.
    runRetryDelay: 1_000,
    // BullMQ follows a rate limit set by hand (for the clock hour) only if it has a limiter.
    limiter: { max: 1_000_000, duration: 1_000 },
    settings: {
      // Used only for errors of the queue itself; the failure policy sets all other pauses.
      backoffStrategy: (attempt) => backoffMs(attempt ?? 1, config.EOD_BACKOFF_MS, Math.random()),
    },
  };
}

async function closeWithin(workers: JobWorker[], graceMs: number, abort: AbortController): Promise<void> {
  const closed = Promise.all(workers.map((worker) => worker.close()));
  if (await endsWithin(closed, graceMs)) return;
  abort.abort();
  // While BullMQ reconnects, `close` waits for a connection that it does not have. It can be left unfinished: the jobs
  // stall, and other workers take them.
  await endsWithin(closed, ROLL_BACK_MS);
}

/** @returns false if `work` takes longer. @throws what `work` throws. */
async function endsWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const done = new AbortController();
  const late = sleep(milliseconds, false, { signal: done.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}

/** How far the heap may grow beyond its size after the last full garbage collection. Unit: percent. */
const GROWTH = 50;

/**
 * Limits the memory of a worker. By default V8 keeps the records of past windows until the heap is three times as large
 * as needed: 350 MB instead of 250 MB, at the same speed (docs/performance.md). V8 reads this setting at each full
 * collection, so it can be set in a running process.
 */
function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}
