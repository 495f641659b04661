import type { QueueContext } from './context.ts';
import type { NewJob, WindowJob } from './queue.ts';
import { openWindows } from './window-store.ts';

/** The night's data cannot wait behind a long backfill. Lower goes first. */
const PRIORITY = { nightly: 1, backfill: 10 } as const;

const PORTION = 1_000;

/**
 * Makes sure the queue holds a job for every open window of these runs. Job ids follow from the
 * window, so what is there already stays as it is: this may run any number of times.
 */
export async function enqueueOpenWindows(context: QueueContext, runIds: readonly number[]): Promise<void> {
  if (runIds.length === 0) return;
  const open = await openWindows(context.db, runIds);
  for (let at = 0; at < open.length; at += PORTION) {
    await context.queues.windows.addBulk(
      open.slice(at, at + PORTION).map((window) => windowJob(context, window)),
    );
  }
}

function windowJob(
  { config }: QueueContext,
  window: { id: number; runId: number; kind: keyof typeof PRIORITY },
): NewJob<WindowJob> {
  return {
    name: 'window',
    data: { runId: window.runId, windowId: window.id },
    opts: {
      jobId: `run-${window.runId}-window-${window.id}`,
      priority: PRIORITY[window.kind],
      attempts: config.EOD_ATTEMPTS,
      backoff: { type: 'eod' },
      // A kept finished job would block the same id from being added again by a resume.
      removeOnComplete: true,
      removeOnFail: true,
    },
  };
}
