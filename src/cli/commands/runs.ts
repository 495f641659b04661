import { hasDays, runStateText } from '../../core/wording.ts';
import type { RunReport } from '../../state/runs/reports.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { limit, numberInList } from '../options.ts';
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

export default defineCommand({
  path: 'runs',
  group: 'Look',
  summary:
    'List the newest runs; with a number, show that run and the windows that failed. The verbs continue a run or cancel it.',
  args: { id: numberInList('run', 'number of a run, to show that one') },
  options: { limit: limit(20) },
  json: 'a list of runs',
  examples: ['eod runs', 'eod runs 12', 'eod runs --limit 100 --json', 'eod runs resume 12'],
  async run(cli, { id, limit, json }) {
    const { listRuns, reportRun } = await import('../../state/runs/reports.ts');
    const { openContext } = await import('../open-context.ts');
    const context = await openContext(cli);
    const { EOD_TIMEZONE: timeZone } = context.config;
    if (id === undefined) {
      const runs = await listRuns(context, limit);
      if (json) return printJson(cli, runs);
      return print(cli, runs.length === 0 ? 'no runs yet' : table(columns(timeZone), runs));
    }
    const report = await reportRun(context, id);
    if (json) return printJson(cli, report);
    const failures = failuresText(report);
    const text = runText(report, timeZone);
    print(cli, failures === null ? text : `${text}\n\n${failures}`);
  },
});
