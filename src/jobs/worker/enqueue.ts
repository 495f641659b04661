import { runStep } from '../../core/steps.ts';
import { type OpenWindow, openWindows } from '../../load/state/windows/windows.ts';
import type { QueueContext } from '../context.ts';
import { type NewJob, queueOf, WINDOW_QUEUES, type WindowJob } from './queue.ts';

const BATCH = 1_000;

/** What is taken first, by BullMQ's priorities: the lowest. */
export const PRIORITY = {
  /** The source has prepared the answer, or is about to. */
  prepared: 1,
  /** Plus the days of the part of a window that was split. */
  piece: 1,
  other: 1_000_000,
} as const;

/**
 * Makes sure the queue holds a job for every open window of these runs. Job ids follow from the
 * window, so what is there already stays as it is: this may run any number of times.
 */
export async function enqueueOpenWindows(context: QueueContext, runIds: readonly number[]): Promise<void> {
  const [run] = runIds;
  if (run === undefined) return;
  const facts = { database: context.queues.databaseId, ...(runIds.length === 1 ? { run } : {}) };
  return runStep('enqueue', facts, () => enqueue(context, runIds));
}

async function enqueue(context: QueueContext, runIds: readonly number[]): Promise<void> {
  const open = await openWindows(context.db.drizzle, runIds);
  for (const name of WINDOW_QUEUES) {
    const jobs = open
      .filter((window) => queueOf(window.kind) === name)
      .map((window) => windowJob(context, window));
    for (let at = 0; at < jobs.length; at += BATCH) {
      await context.queues.windows[name].addBulk(jobs.slice(at, at + BATCH));
    }
  }
}

/**
 * The same for a run that is written already: a queue that is away for a moment does not undo it.
 * Workers find such windows by themselves (`requeueLostWindows`).
 */
export async function announceRun(context: QueueContext, runId: number): Promise<void> {
  try {
    await enqueueOpenWindows(context, [runId]);
  } catch (error) {
    context.log.warn({ runId, err: error }, 'could not enqueue the run; workers will within half a minute');
  }
}

function windowJob({ queues }: QueueContext, window: OpenWindow): NewJob<WindowJob> {
  return {
    name: 'window',
    data: { database: queues.databaseId, runId: window.runId, windowId: window.id },
    opts: {
      jobId: `run-${window.runId}-window-${window.id}`,
      // Attempts are counted with the window, and bounded by the failure policy.
      attempts: 1_000_000,
      backoff: { type: 'eod' },
      priority: priorityOf(window),
      // A kept finished job would block the same id from being added again by a resume.
      removeOnComplete: true,
      removeOnFail: true,
    },
  };
}

/**
 * The shortest pieces of split windows go first: a single day shows whether the source answers at all before each
 * long window has met the same error.
 */
function priorityOf({ prepared, piece, days }: OpenWindow): number {
  if (prepared) return PRIORITY.prepared;
  return piece ? PRIORITY.piece + days : PRIORITY.other;
}
