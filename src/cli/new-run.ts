import type { QueueContext } from '../jobs/context.ts';
import { startRun } from '../jobs/runs/runs.ts';
import { reportRun } from '../load/state/reports.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { plural, print, printJson } from './output.ts';

/** Writes the run for other processes to work on, and says which it is. */
export async function detach(
  context: QueueContext,
  request: RunRequest,
  flags: { readonly json?: boolean },
): Promise<void> {
  const runId = await newRun(context, request);
  const report = await reportRun(context.db.drizzle, runId);
  if (flags.json === true) printJson(report);
  else print(`run ${report.runId} enqueued: ${plural(report.windows.open, 'window')}`);
}

/** Plans and enqueues a new run. */
export async function newRun(context: QueueContext, request: RunRequest): Promise<number> {
  const runId = await startRun(context, request);
  if (runId === null) throw new Error('a run without a tick always has a number');
  return runId;
}
