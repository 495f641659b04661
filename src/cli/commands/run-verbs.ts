import { usageError } from '../../core/errors.ts';
import { cancelRun, reopenRun, resumeRun } from '../../jobs/runs/run-control.ts';
import { reportRun } from '../../state/runs/reports.ts';
import { type Cli, confirm, type JsonFlag, print, printJson, type YesFlag } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { plural } from '../output.ts';
import { printEnding, workOnReplay, workOnRun } from '../work-on-run.ts';

export async function resume(cli: Cli, runId: number, flags: JsonFlag): Promise<void> {
  const opened = await openContext(cli, { wait: 'short' });
  const { kind } = await reportRun(opened, runId);
  if (kind === 'import') {
    throw usageError(
      `run ${runId} is an import: import the same files again; those that were loaded are skipped`,
    );
  }
  // A replay makes no calls: it needs neither the queue nor the source's settings.
  if (kind === 'replay') {
    await reopenRun(opened, runId);
    return printEnding(cli, await workOnReplay(cli, opened, runId), flags, opened.config);
  }
  const context = await openContext(cli, { source: true, wait: 'short', opened });
  await resumeRun(context, runId);
  printEnding(cli, await workOnRun(cli, context, runId), flags, opened.config);
}

export async function cancel(cli: Cli, runId: number, flags: JsonFlag & YesFlag): Promise<void> {
  const context = await openContext(cli);
  const { state, windows } = await reportRun(context, runId);
  if (state === 'running' || state === 'paused') {
    const warning = `Run ${runId} is cancelled for good: ${plural(windows.open, 'window')} will not be loaded by it.`;
    if (!(await confirm(cli, warning, flags))) return;
  }
  await cancelRun(context, runId);
  const report = await reportRun(context, runId);
  if (flags.json === true) return printJson(cli, report);
  print(cli, `run ${runId} ${report.state}: ${plural(report.windows.cancelled, 'window')} cancelled`);
}
