import type { QueueContext } from '../jobs/context.ts';
import { reportRun } from '../jobs/runs/report.ts';
import { reserveRunId, startRun } from '../jobs/runs/runs.ts';
import { patiently } from '../load/database/retry.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { patienceOf } from './app.ts';
import type { Cli } from './command.ts';
import { plural, print, printJson } from './output.ts';

/** Writes the run for other processes to work on, and says which it is. */
export async function detach(
  cli: Cli,
  context: QueueContext,
  request: RunRequest,
  flags: { readonly json?: boolean },
): Promise<void> {
  const runId = await newRun(cli, context, request);
  const report = await patiently(patienceOf(cli.life, context.config), () =>
    reportRun(context.db.pool, runId),
  );
  if (flags.json === true) printJson(report);
  else print(`run ${report.runId} enqueued: ${plural(report.windows.open, 'window')}`);
}

/** Plans and enqueues a new run, once, however often Postgres goes away meanwhile. */
export async function newRun({ life }: Cli, context: QueueContext, request: RunRequest): Promise<number> {
  const patience = patienceOf(life, context.config);
  const id = await patiently(patience, () => reserveRunId(context));
  await patiently(patience, () => startRun(context, request, { id }));
  return id;
}
