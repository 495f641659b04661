import { runningRuns } from '../../load/state/runs.ts';
import { openWindows } from '../../load/state/windows.ts';
import type { QueueContext } from '../context.ts';
import { advanceRun } from '../runs/advance.ts';
import { enqueueOpenWindows } from './enqueue.ts';
import { WINDOW_QUEUES } from './queue.ts';

/** How often a worker looks for windows the queue has lost while it runs, … */
const EVERY_MS = 30_000;

/** … and how soon again when it could not. */
const AGAIN_MS = 2_000;

/** Job states in which a window will yet be worked on. */
const QUEUED = ['active', 'waiting', 'delayed', 'prioritized', 'paused'];

/**
 * Enqueues open windows the queue does not know (it was lost, or its process died between commit
 * and enqueue) and closes runs whose last worker died before it could.
 */
export async function reconcile(context: QueueContext): Promise<void> {
  const runs = await runningRuns(context.db.drizzle);
  if (runs.length === 0) return;
  const open = await openWindows(context.db.drizzle, runs);
  let queued = 0;
  for (const kind of WINDOW_QUEUES) {
    const counts = await context.queues.windows[kind].getJobCounts();
    for (const state of QUEUED) queued += counts[state] ?? 0;
  }
  if (queued < open.length) await enqueueOpenWindows(context, runs);
  for (const runId of runs) await advanceRun(context, runId);
}

export interface Reconciling {
  stop(): void;
}

/**
 * Reconciles now, from time to time, and at once when the queue's server is back. A server that is
 * away just now is no reason not to start: it is tried again soon.
 */
export async function keepReconciled(context: QueueContext): Promise<Reconciling> {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let busy = false;
  let wanted = false;

  async function run(): Promise<void> {
    wanted = busy;
    if (busy || stopped) return;
    busy = true;
    clearTimeout(timer);
    let next = EVERY_MS;
    try {
      await reconcile(context);
    } catch (error) {
      context.log.warn({ err: error }, 'could not compare the queue with the database');
      next = AGAIN_MS;
    }
    busy = false;
    if (stopped) return;
    timer = setTimeout(() => void run(), wanted ? 0 : next);
    timer.unref();
  }

  const deaf = context.queues.onReturn(() => void run());
  await run();
  return {
    stop() {
      stopped = true;
      deaf();
      clearTimeout(timer);
    },
  };
}
