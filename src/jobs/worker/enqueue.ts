import { runStep } from '../../core/steps.ts';
import { type OpenWindow, openWindows } from '../../load/state/windows/windows.ts';
import type { QueueContext } from '../context.ts';
import { type NewJob, queueOf, type WindowJob } from './queue.ts';

const BATCH = 1_000;

/** Priorities in BullMQ: jobs with the lowest number are taken first. */
export const PRIORITY = {
  /** Windows whose answer the source has prepared or is preparing. */
  prepared: 1,
  /** Pieces of split windows; their number of days is added. */
  piece: 1,
  other: 1_000_000,
} as const;

/**
 * Makes sure that the queue has a job for every open window of these runs. May be called any number of times: the job
 * id is made from the window's, and BullMQ does not add a job whose id it has.
 */
export async function enqueueOpenWindows(context: QueueContext, runIds: readonly number[]): Promise<void> {
  const [run] = runIds;
  if (run === undefined) return;
  const facts = { database: context.queues.databaseId, ...(runIds.length === 1 ? { run } : {}) };
  return runStep('enqueue', facts, async () => {
    for (const runId of runIds) await enqueue(context, runId);
  });
}

async function enqueue(context: QueueContext, runId: number): Promise<void> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const open: OpenWindow[] = await openWindows(context.db.drizzle, runId, { after, limit: BATCH });
    const [first] = open;
    if (first === undefined) return;
    const jobs = open.map((window) => windowJob(context, window));
    await context.queues.windows[queueOf(first.kind)].addBulk(jobs);
    after = open.length < BATCH ? undefined : open.at(-1)?.id;
  }
}

/**
 * The same for a run that has just been written. Does not throw if the queue cannot be reached: workers will enqueue
 * the windows (`requeueLostWindows`).
 */
export async function enqueueRun(context: QueueContext, runId: number): Promise<void> {
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
      // Attempts are counted with the window and limited by the failure policy.
      attempts: 1_000_000,
      backoff: { type: 'eod' },
      priority: priorityOf(window),
      // While a finished job is kept, a resumed run could not add a job with the same id.
      removeOnComplete: true,
      removeOnFail: true,
    },
  };
}

/**
 * The shortest pieces of split windows come first: a single day shows whether the source answers at all, before every
 * long window fails with the same error.
 */
function priorityOf({ prepared, piece, days }: OpenWindow): number {
  if (prepared) return PRIORITY.prepared;
  return piece ? PRIORITY.piece + days : PRIORITY.other;
}
