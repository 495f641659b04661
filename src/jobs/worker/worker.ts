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

/** How often alerts that could not be delivered are sent again. */
const ALERTS_MS = 60_000;

/** Windows in flight have this long to finish after a stop before they are rolled back. */
const GRACE_MS = 7_000;

/** The rollback may take this long. */
const ROLL_BACK_MS = 2_000;

export interface RunningWorker {
  /**
   * Takes no new window, lets those in flight finish for a few seconds, then rolls the rest back
   * and puts it into the queue again. Never takes longer than about ten seconds.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Starts taking windows, after enqueueing the open windows that the queue has lost. */
export async function startWorker(opened: WorkContext): Promise<RunningWorker> {
  // The failure policy puts a window off when Postgres is away.
  const context = { ...opened, db: opened.db.withoutRetry };
  const { config, queues, clock } = context;
  limitHeapGrowth();
  const abort = new AbortController();
  // The budget may hold calls again since a worker last looked: the limit was raised, or the hour turned.
  await Promise.all(WINDOW_QUEUES.map((kind) => queues.windows[kind].removeRateLimitKey())).catch((error) =>
    context.log.warn({ err: error }, 'could not look at the hour again; workers will within a minute'),
  );
  const requeueing = await startRequeueing(context);
  // Both queues ask the same source, so they share what is known of its health.
  const breaker = createBreaker(clock);
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

/** Settings shared by every worker: the jobs of killed workers are started again, and the failure policy sets the pauses. */
export function workerSettings({ config }: Pick<Context, 'config'>, concurrency: number): WorkerSettings {
  return {
    concurrency,
    lockDuration: config.EOD_STALL_MS,
    stalledInterval: Math.max(500, Math.floor(config.EOD_STALL_MS / 2)),
    // How often a window may lose its worker is counted with the window: see MAX_LOST_WORKERS.
    maxStalledCount: 1_000_000,
    // After a broken connection BullMQ would rest for 15 s.
    runRetryDelay: 1_000,
    // BullMQ looks at manual rate limits (the clock hour) only where a limiter is set.
    limiter: { max: 1_000_000, duration: 1_000 },
    settings: {
      // Only what the queue itself could not do comes here.
      backoffStrategy: (attempt) => backoffMs(attempt ?? 1, config.EOD_BACKOFF_MS, Math.random()),
    },
  };
}

async function closeWithin(workers: JobWorker[], graceMs: number, abort: AbortController): Promise<void> {
  const closed = Promise.all(workers.map((worker) => worker.close()));
  if (await endsWithin(closed, graceMs)) return;
  abort.abort();
  // While it reconnects, BullMQ waits for the end of a connection it does not have. Nothing is lost
  // with what is left behind: its jobs stall, and other workers take them.
  await endsWithin(closed, ROLL_BACK_MS);
}

/** @returns false when time is up first. @throws what `work` throws. */
async function endsWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const done = new AbortController();
  const late = sleep(milliseconds, false, { signal: done.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}

/** How far the heap may grow beyond what was alive at the last full collection. Unit: percent. */
const GROWTH = 50;

/**
 * Keeps the memory of a worker near what its windows in flight really need. Left alone, V8 lets the
 * read records of past windows pile up to three times that before it collects them: 350 MB instead of
 * 250 MB, at the same speed (docs/performance.md). V8 looks at this setting at each full collection, so
 * it may be set while running.
 */
function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}
