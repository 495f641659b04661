import { hostname } from 'node:os';
import { updateObservedAliases } from '../../load/market/observed-aliases.ts';
import { hasRested } from '../../load/state/access-keys.ts';
import { runningRuns } from '../../load/state/runs.ts';
import { openWindows } from '../../load/state/windows/windows.ts';
import { markWorkerSeen } from '../../load/state/workers.ts';
import type { QueueContext } from '../context.ts';
import { advanceRun } from '../runs/advance.ts';
import { followUpRuns } from '../runs/finish.ts';
import { enqueueOpenWindows } from './enqueue.ts';
import { WINDOW_QUEUES } from './queue.ts';
import { permitOf } from './quota.ts';

/** How often a running worker looks for windows the queue has lost, … */
const EVERY_MS = 30_000;

/** … and how soon again when it could not. */
const AGAIN_MS = 2_000;

/** Job states in which a window will yet be worked on. */
const QUEUED = ['active', 'waiting', 'delayed', 'prioritized', 'paused'];

/**
 * Enqueues open windows the queue does not know (it was lost, or the process that planned them ended
 * between commit and enqueue), ends runs whose last worker ended before it could, and does what follows
 * the end of runs where their last worker ended before that.
 */
export async function requeueLostWindows(context: QueueContext): Promise<void> {
  await followUpRuns(context);
  const runs = await runningRuns(context.db.drizzle);
  if (runs.length === 0) return;
  const open = await openWindows(context.db.drizzle, runs);
  const { config, clock, queues } = context;
  // The next window tries the key; refused again, it rests for as long, and what waited for it ends.
  if (await hasRested(context.db.drizzle, permitOf(config, clock))) await queues.resume();
  let queued = 0;
  for (const kind of WINDOW_QUEUES) {
    const counts = await queues.windows[kind].getJobCounts();
    for (const state of QUEUED) queued += counts[state] ?? 0;
  }
  if (queued < open.length) await enqueueOpenWindows(context, runs);
  for (const runId of runs) await advanceRun(context, runId);
}

/**
 * Says that this worker is alive, requeues lost windows and brings the names of instruments up to date: now, from time
 * to time, and at once when the queue's server is back. A server that is away just now is no reason not to start: it is
 * tried again soon.
 */
export async function startRequeueing(context: QueueContext): Promise<{ stop(): void }> {
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
      await markWorkerSeen(context.db.drizzle, `${hostname()} ${process.pid}`);
      await requeueLostWindows(context);
      // Of a run that has ended they are; of a long one they follow from time to time.
      await updateObservedAliases(context.db);
    } catch (error) {
      context.log.warn({ err: error }, 'could not look for windows that the queue has lost');
      next = AGAIN_MS;
    }
    busy = false;
    if (stopped) return;
    timer = setTimeout(() => void run(), wanted ? 0 : next);
    timer.unref();
  }

  const stopListening = context.queues.onReturn(() => void run());
  await run();
  return {
    stop() {
      stopped = true;
      stopListening();
      clearTimeout(timer);
    },
  };
}
