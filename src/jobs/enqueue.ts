import type { QueueContext } from './context.ts';
import { type NewJob, queueOf, WINDOW_QUEUES, type WindowJob } from './queue.ts';
import { openWindows } from './window-store.ts';

const PORTION = 1_000;

/**
 * Makes sure the queue holds a job for every open window of these runs. Job ids follow from the
 * window, so what is there already stays as it is: this may run any number of times.
 */
export async function enqueueOpenWindows(context: QueueContext, runIds: readonly number[]): Promise<void> {
  if (runIds.length === 0) return;
  const open = await openWindows(context.db, runIds);
  for (const name of WINDOW_QUEUES) {
    const jobs = open
      .filter((window) => queueOf(window.kind) === name)
      .map((window) => windowJob(context, window));
    for (let at = 0; at < jobs.length; at += PORTION) {
      await context.queues.windows[name].addBulk(jobs.slice(at, at + PORTION));
    }
  }
}

function windowJob({ config }: QueueContext, window: { id: number; runId: number }): NewJob<WindowJob> {
  return {
    name: 'window',
    data: { runId: window.runId, windowId: window.id },
    opts: {
      jobId: `run-${window.runId}-window-${window.id}`,
      attempts: config.EOD_ATTEMPTS,
      backoff: { type: 'eod' },
      // A kept finished job would block the same id from being added again by a resume.
      removeOnComplete: true,
      removeOnFail: true,
    },
  };
}
