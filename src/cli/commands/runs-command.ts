import type { Command } from 'commander';
import { usageError } from '../../core/errors.ts';
import { runStateText } from '../../core/wording.ts';
import type { RunReport } from '../../load/state/runs/reports.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson } from '../cli.ts';
import { confirm, type YesFlag, yesOption } from '../confirm.ts';
import { examples, jsonOption, limitOption, listOf, parseListed, runIdArgument } from '../options.ts';
import { type Column, columnsOf, count, momentText, plural, table } from '../output.ts';
import { failuresText, runText } from '../run-output.ts';

const columns = (timeZone: string): Column<RunReport>[] => [
  { head: 'run', cell: (run) => run.runId },
  ...columnsOf<RunReport>('kind'),
  { head: 'state', cell: runStateText },
  // With the year there would be no room for the last column.
  {
    head: 'started',
    cell: (run) => momentText(run.startedAt, timeZone).slice('2025-'.length, -':00'.length),
  },
  ...columnsOf<RunReport>('from', 'to'),
  { head: 'windows', cell: windowsText },
];

/** How many windows there are, or how many of them have a problem, the worst problem first. */
function windowsText({ windows, suspicious, rejected }: RunReport): string {
  const ofTotal = ` of ${count(windows.total)}`;
  const bad = windows.failed + windows.blocked;
  if (bad > 0) return `${count(bad)}${ofTotal} failed`;
  if (windows.open > 0) return `${count(windows.open)}${ofTotal} left`;
  if (suspicious.length > 0) return `${count(suspicious.length)}${ofTotal} suspicious`;
  return rejected > 0 ? `${count(windows.total)}, ${count(rejected)} rejects` : count(windows.total);
}

export const commands: Commands = {
  runs(command, cli) {
    command.addHelpText(
      'after',
      examples('eod runs', 'eod runs 12', 'eod runs --limit 100 --json', 'eod runs resume 12'),
    );
    listOf(command, 'the number of a run')
      .argument('[id]', 'number of a run, to show that one')
      .addOption(limitOption(20))
      .addOption(jsonOption('a list of runs'))
      .action((id: string | undefined, flags: JsonFlag & { readonly limit: number }) =>
        id === undefined ? listRuns(cli, flags) : showRun(cli, parseListed(command, 'run', id), flags),
      );
    const resume = command.command('resume');
    addResume(resume.description('Continue a run: what is left of a stopped one, or what failed.'), cli);
    const cancel = command.command('cancel');
    addCancel(cancel.description('Cancel a run. What it has loaded stays; the rest is not asked for.'), cli);
  },
  run(command, cli) {
    command
      .addArgument(runIdArgument())
      .addOption(jsonOption())
      .addHelpText('after', examples('eod runs 12', 'eod runs 12 --json'))
      .action((runId: number, flags: JsonFlag) => showRun(cli, runId, flags));
  },
  resume: addResume,
  cancel: addCancel,
};

function addResume(command: Command, cli: Cli): void {
  command
    .addArgument(runIdArgument())
    .addOption(jsonOption())
    .addHelpText('after', examples('eod runs resume 12'))
    .action((runId: number, flags: JsonFlag) => resumeRun(cli, runId, flags));
}

function addCancel(command: Command, cli: Cli): void {
  command
    .addArgument(runIdArgument())
    .addOption(yesOption())
    .addOption(jsonOption())
    .addHelpText('after', examples('eod runs cancel 12'))
    .action((runId: number, flags: JsonFlag & YesFlag) => cancelRun(cli, runId, flags));
}

async function listRuns(cli: Cli, flags: JsonFlag & { readonly limit: number }): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const reports = await import('../../load/state/runs/reports.ts');
  const context = await openContext(cli);
  const listed = await reports.listRuns(context, flags.limit);
  if (flags.json === true) printJson(cli, listed);
  else print(cli, listed.length === 0 ? 'no runs yet' : table(columns(context.config.EOD_TIMEZONE), listed));
}

async function showRun(cli: Cli, runId: number, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { reportRun } = await import('../../load/state/runs/reports.ts');
  const context = await openContext(cli);
  const report = await reportRun(context, runId);
  if (flags.json === true) return printJson(cli, report);
  const failures = failuresText(report);
  const text = runText(report, context.config.EOD_TIMEZONE);
  print(cli, failures === null ? text : `${text}\n\n${failures}`);
}

async function resumeRun(cli: Cli, runId: number, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { reportRun } = await import('../../load/state/runs/reports.ts');
  const runs = await import('../../jobs/runs/run-control.ts');
  const { printEnding, workOnReplay, workOnRun } = await import('../work-on-run.ts');
  const opened = await openContext(cli, { wait: 'short' });
  const { kind } = await reportRun(opened, runId);
  if (kind === 'import') {
    throw usageError(
      `run ${runId} is an import: import the same files again; those that were loaded are skipped`,
    );
  }
  // A replay makes no calls: it needs neither the queue nor the source's settings.
  if (kind === 'replay') {
    await runs.reopenRun(opened, runId);
    return printEnding(cli, await workOnReplay(cli, opened, runId), flags, opened.config);
  }
  const context = await openContext(cli, { source: true, wait: 'short', opened });
  await runs.resumeRun(context, runId);
  printEnding(cli, await workOnRun(cli, context, runId), flags, opened.config);
}

async function cancelRun(cli: Cli, runId: number, flags: JsonFlag & YesFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { reportRun } = await import('../../load/state/runs/reports.ts');
  const runs = await import('../../jobs/runs/run-control.ts');
  const context = await openContext(cli);
  const { state, windows } = await reportRun(context, runId);
  if (state === 'running' || state === 'paused') {
    const what = `Run ${runId} is cancelled for good: ${plural(windows.open, 'window')} will not be loaded by it.`;
    if (!(await confirm(cli, what, flags))) return;
  }
  await runs.cancelRun(context, runId);
  const report = await reportRun(context, runId);
  if (flags.json === true) return printJson(cli, report);
  print(cli, `run ${runId} ${report.state}: ${plural(report.windows.cancelled, 'window')} cancelled`);
}
