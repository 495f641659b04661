import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import { listRuns, type RunReport } from '../load/state/reports.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { type Column, print, printJson, table } from './output.ts';

const COLUMNS: readonly Column<RunReport>[] = [
  { head: 'run', cell: (run) => run.runId },
  { head: 'kind', cell: (run) => run.kind },
  { head: 'state', cell: (run) => run.state },
  { head: 'from', cell: (run) => run.from },
  { head: 'to', cell: (run) => run.to },
  { head: 'windows', cell: (run) => run.windows.total },
  { head: 'left', cell: (run) => run.windows.open },
  { head: 'failed', cell: (run) => run.windows.failed + run.windows.blocked },
  { head: 'fetched', cell: (run) => run.fetched },
  { head: 'inserted', cell: (run) => run.inserted },
  { head: 'rejected', cell: (run) => run.rejected },
  { head: 'suspicious', cell: (run) => run.suspicious.length },
  { head: 'seconds', cell: (run) => run.seconds },
];

interface Flags {
  readonly limit: string;
  readonly json?: boolean;
}

export function runsCommand(program: Command, cli: Cli): Command {
  return program
    .command('runs')
    .description('The newest runs, the newest first.')
    .option('--limit <n>', 'how many', '20')
    .option('--json', 'print one JSON document: a list of runs')
    .addHelpText('after', examples('eod runs', 'eod runs --limit 100 --json'))
    .action((flags: Flags) => runs(cli, flags));
}

async function runs(cli: Cli, flags: Flags): Promise<void> {
  if (!/^[1-9]\d{0,3}$/.test(flags.limit)) {
    throw usageError(`--limit: "${flags.limit}" is not a whole number from 1 to 9999`);
  }
  const context = await openContext(cli.life, loadConfig());
  const reports = await listRuns(context.db.drizzle, Number(flags.limit));
  if (flags.json === true) printJson(reports);
  else print(reports.length === 0 ? 'no runs yet' : table(COLUMNS, reports));
}
