import { hasDays, runStateText } from '../../core/wording.ts';
import * as reports from '../../state/runs/reports.ts';
import { type RunReport, reportRun } from '../../state/runs/reports.ts';
import { type Cli, type JsonFlag, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { type Column, count, memberColumns, momentText, table } from '../output.ts';
import { failuresText, runText } from '../run-output.ts';

const columns = (timeZone: string): Column<RunReport>[] => [
  { head: 'run', cell: (run) => run.runId },
  ...memberColumns<RunReport>('kind'),
  { head: 'state', cell: runStateText },
  // With the year there would be no room for the last column.
  {
    head: 'started',
    cell: (run) => momentText(run.startedAt, timeZone).slice('2025-'.length, -':00'.length),
  },
  { head: 'from', cell: (run) => (hasDays(run) ? run.from : '') },
  { head: 'to', cell: (run) => (hasDays(run) ? run.to : '') },
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

export async function listRuns(cli: Cli, flags: JsonFlag & { readonly limit: number }): Promise<void> {
  const context = await openContext(cli);
  const listed = await reports.listRuns(context, flags.limit);
  if (flags.json === true) printJson(cli, listed);
  else print(cli, listed.length === 0 ? 'no runs yet' : table(columns(context.config.EOD_TIMEZONE), listed));
}

export async function showRun(cli: Cli, runId: number, flags: JsonFlag): Promise<void> {
  const context = await openContext(cli);
  const report = await reportRun(context, runId);
  if (flags.json === true) return printJson(cli, report);
  const failures = failuresText(report);
  const text = runText(report, context.config.EOD_TIMEZONE);
  print(cli, failures === null ? text : `${text}\n\n${failures}`);
}
