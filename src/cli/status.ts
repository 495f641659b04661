import type { Command } from 'commander';
import { type OpenRun, type OperationStatus, readStatus, type Status } from '../jobs/status.ts';
import { openContext } from './app.ts';
import { type Cli, examples } from './command.ts';
import { type Column, print, printJson, table } from './output.ts';

const COLUMNS: readonly Column<OperationStatus>[] = [
  { head: 'operation', cell: (one) => one.operation },
  { head: 'exchange', cell: (one) => one.exchange },
  { head: 'last loaded', cell: (one) => one.lastLoaded ?? 'nothing' },
  { head: 'last 10 sessions', cell: (one) => recentText(one) },
  { head: 'open rejects', cell: (one) => one.openRejects },
  { head: 'last run', cell: (one) => one.lastRun },
];

const RUN_COLUMNS: readonly Column<OpenRun>[] = [
  { head: 'run', cell: (run) => run.runId },
  { head: 'kind', cell: (run) => run.kind },
  { head: 'state', cell: (run) => run.state },
  { head: 'windows', cell: (run) => run.total },
  { head: 'done', cell: (run) => run.ended },
  { head: 'fetched', cell: (run) => run.fetched },
];

const STATE_NAMES: Readonly<Record<string, string>> = {
  never: 'never asked',
  not_published: 'not published',
};

export function statusCommand(program: Command, cli: Cli): Command {
  return program
    .command('status')
    .description('What is loaded, what is missing, what was refused, and what is being worked on.')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod status', 'eod status --json'))
    .action(async (flags: { readonly json?: boolean }) => {
      const status = await readStatus(await openContext(cli.life));
      if (flags.json === true) printJson(status);
      else print(text(status));
    });
}

function text({ operations, openRuns, queue, database }: Status): string {
  return [
    table(COLUMNS, operations),
    '',
    openRuns.length === 0 ? 'no open runs' : table(RUN_COLUMNS, openRuns),
    '',
    `database: ${database === 'private' ? 'private Postgres (EOD_DATA_DIR)' : database}; queue: ${queue}`,
  ].join('\n');
}

function recentText({ recent }: OperationStatus): string {
  return Object.entries(recent)
    .map(([state, sessions]) => `${sessions} ${STATE_NAMES[state] ?? state}`)
    .join(', ');
}
