import type { Job } from 'bullmq';
import { decideLocalFailure } from '../policy/failure-policy.ts';
import type { WindowJob } from '../queue/queue.ts';
import { advanceRun } from '../runs/advance.ts';
import type { WorkerContext } from './claim-call.ts';
import { handToQueue } from './hand-to-queue.ts';
import { processWindow, type QueueVerdict } from './process-window.ts';

/**
 * Handles the job of a window: works on the window, advances the runs of which windows have ended, and instructs BullMQ
 * what to do with the job.
 *
 * @returns whether the window is loaded.
 */
export async function handleWindowJob(
  context: WorkerContext,
  job: Job<WindowJob>,
  token: string | undefined,
): Promise<boolean> {
  const { verdict, runs, isLoaded } = await processWindow(context, job.data);
  const advanced = await advanceRuns(context, runs);
  const reported = verdict ?? advanced;
  if (reported === undefined) return isLoaded;
  const { action, error } = reported;
  if (action.act === 'rate_limit') await context.queue.rateLimit(Math.max(1, Math.ceil(action.delayMs)));
  return handToQueue(job, token, action, error);
}

/** @returns what BullMQ is to do if a run could not be advanced: its job is tried again, and finds its window ended. */
async function advanceRuns(
  context: WorkerContext,
  runs: readonly number[],
): Promise<QueueVerdict | undefined> {
  try {
    for (const run of runs) await advanceRun(context, run);
    return undefined;
  } catch (error) {
    const action = decideLocalFailure(error);
    context.log.warn({ runs, err: error, action }, 'could not advance the run; it is tried again');
    return { action, error };
  }
}
