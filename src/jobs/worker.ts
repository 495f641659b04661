import { setTimeout as sleep } from 'node:timers/promises';
import { advanceRun } from './advance.ts';
import { deliverAlerts } from './alerts.ts';
import { createBreaker } from './breaker.ts';
import type { Context, WorkContext } from './context.ts';
import { enqueueOpenWindows } from './enqueue.ts';
import { processWindow } from './process-window.ts';
import { type JobWorker, WINDOW_QUEUES, type WindowJob, type WorkerSettings } from './queue.ts';
import { openRuns } from './runs.ts';
import { backoffMs } from './verdict.ts';
import { openWindows } from './window-store.ts';

/** How often a worker looks for windows the queue has lost while it runs. */
const RECONCILE_MS = 30_000;

/** How often it sends alerts again that nobody has heard. */
const ALERTS_MS = 60_000;

/** Job states in which a window will yet be worked on. */
const QUEUED = ['active', 'waiting', 'delayed', 'prioritized', 'paused'];

/** Windows in flight have this long to finish after a stop before they are rolled back. */
const GRACE_MS = 7_000;

export interface RunningWorker {
  /**
   * Takes no new window, lets those in flight finish for a few seconds, then rolls the rest back
   * and puts it into the queue again. Never takes longer than about ten seconds.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Starts taking windows, after bringing the queue in line with etl.* (which is the truth). */
export async function startWorker(context: WorkContext): Promise<RunningWorker> {
  const { config, queues, log, clock } = context;
  const abort = new AbortController();
  await reconcile(context);
  // Both queues ask the same source: what one learns of its health holds for the other.
  const breaker = createBreaker(clock);
  const workers = WINDOW_QUEUES.map((kind) => {
    const bench = { queue: queues.windows[kind], kind, breaker, signal: abort.signal };
    return queues.work<WindowJob>(
      kind,
      (job, token) => processWindow(context, bench, job, token),
      workerSettings(context, config.EOD_CONCURRENCY),
    );
  });
  const timer = setInterval(() => {
    reconcile(context).catch((error) => log.warn({ err: error }, 'could not compare the queue with etl.*'));
  }, RECONCILE_MS);
  timer.unref();
  const silence = new AbortController();
  let sending = deliverAlerts(context, silence.signal);
  const alertTimer = setInterval(() => {
    sending = deliverAlerts(context, silence.signal);
  }, ALERTS_MS);
  alertTimer.unref();
  return {
    async stop(graceMs = GRACE_MS) {
      clearInterval(timer);
      clearInterval(alertTimer);
      silence.abort();
      await Promise.all([closeWithin(workers, graceMs, abort), sending]);
    },
  };
}

/** Settings shared by every worker: killed workers' jobs come back, backoff is ours. */
export function workerSettings({ config }: Pick<Context, 'config'>, concurrency: number): WorkerSettings {
  return {
    concurrency,
    lockDuration: config.EOD_STALL_MS,
    stalledInterval: Math.max(500, Math.floor(config.EOD_STALL_MS / 2)),
    // A window may lose its worker any number of times: the count that matters is in etl.windows.
    maxStalledCount: 1_000_000,
    // BullMQ looks at manual rate limits (the clock hour) only where a limiter is set.
    limiter: { max: 1_000_000, duration: 1_000 },
    settings: {
      backoffStrategy: (attempt, _type, error) =>
        backoffMs(attempt ?? 1, error, config.EOD_BACKOFF_MS, Math.random()),
    },
  };
}

/**
 * Enqueues open windows the queue does not know (it was lost, or its process died between commit
 * and enqueue) and closes runs whose last worker died before it could.
 */
export async function reconcile(context: WorkContext): Promise<void> {
  const runs = await openRuns(context);
  if (runs.length === 0) return;
  const open = await openWindows(context.db, runs);
  let queued = 0;
  for (const kind of WINDOW_QUEUES) {
    const counts = await context.queues.windows[kind].getJobCounts();
    for (const state of QUEUED) queued += counts[state] ?? 0;
  }
  if (queued < open.length) await enqueueOpenWindows(context, runs);
  for (const runId of runs) await advanceRun(context, runId);
}

async function closeWithin(workers: JobWorker[], graceMs: number, abort: AbortController): Promise<void> {
  const closed = Promise.all(workers.map((worker) => worker.close()));
  const done = new AbortController();
  const late = sleep(graceMs, 'late' as const, { signal: done.signal }).catch(() => 'cancelled' as const);
  const first = await Promise.race([closed, late]);
  done.abort();
  if (first !== 'late') return;
  abort.abort();
  await closed;
}
