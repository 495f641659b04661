import type { Command } from 'commander';
import { usageError } from '../core/errors.ts';
import { type Difference, difference, endOfRun } from '../jobs/diff.ts';
import type { RowDifference } from '../load/differences.ts';
import { operationNamed } from '../operations/registry.ts';
import { openContext } from './app.ts';
import { parseRunId } from './args.ts';
import { type Cli, examples } from './command.ts';
import { type Column, plural, print, printJson, table } from './output.ts';

interface Flags {
  readonly operation?: string;
  readonly between?: readonly string[];
  readonly since?: string;
  readonly limit: string;
  readonly json?: boolean;
}

const COLUMNS: readonly Column<RowDifference>[] = [
  { head: 'change', cell: (row) => row.change },
  { head: 'row', cell: (row) => Object.values(row.key).join(' ') },
  {
    head: 'columns, old → new',
    cell: (row) =>
      Object.entries(row.columns)
        .map(([column, value]) => `${column}: ${String(value.old)} → ${String(value.new)}`)
        .join(', '),
  },
];

export function diffCommand(program: Command, cli: Cli): Command {
  return program
    .command('diff')
    .description('What changed in an operation’s tables: rows inserted, changed, withdrawn and listed again.')
    .option('--operation <name>', 'the operation whose tables are compared')
    .option('--between <runs...>', 'two runs: the tables when the first had ended, and when the second had')
    .option('--since <time>', 'the tables at this time, and now; ISO 8601, e.g. 2025-02-27T21:00:00+05:30')
    .option('--limit <n>', 'rows to list at most', '1000')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples(
        'eod diff --operation GetBhavCopyCM --between 12 15',
        'eod diff --operation GetBhavCopyCM --since 2025-02-27T21:00:00+05:30 --json',
      ),
    )
    .action((flags: Flags) => diff(cli, flags));
}

async function diff(cli: Cli, flags: Flags): Promise<void> {
  if (flags.operation === undefined) throw usageError('name an operation with --operation');
  const operation = operationNamed(flags.operation);
  if (!/^[1-9]\d{0,6}$/.test(flags.limit))
    throw usageError(`--limit: "${flags.limit}" is not a whole number from 1`);
  if ((flags.between === undefined) === (flags.since === undefined)) {
    throw usageError('give either --between RUN RUN or --since TIME');
  }
  const since = flags.since === undefined ? null : moment(flags.since);
  const runs = flags.between?.map(parseRunId) ?? [];
  if (since === null && runs.length !== 2) throw usageError('--between takes two runs, e.g. --between 12 15');
  const { db } = await openContext(cli.life);
  const between =
    since === null
      ? { from: await endOfRun(db.pool, runs[0] as number), to: await endOfRun(db.pool, runs[1] as number) }
      : { from: since, to: new Date() };
  if (between.from > between.to) {
    throw usageError(`run ${runs[0]} ended after run ${runs[1]}: name them the other way round`);
  }
  const result = await difference(db.pool, operation, between, Number(flags.limit));
  if (flags.json === true) printJson(result);
  else print(text(result));
}

function moment(text: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime()))
    throw usageError(`--since: "${text}" is not a time; write it as 2025-02-27T21:00:00+05:30`);
  return time;
}

function text(result: Difference): string {
  const { inserted, changed, withdrawn, relisted, rows } = result;
  const all = inserted + changed + withdrawn + relisted;
  return [
    `${result.operation}, ${result.from} to ${result.to}: ${inserted} inserted, ${changed} changed, ${withdrawn} withdrawn, ${relisted} listed again`,
    ...(rows.length === 0 ? [] : ['', table(COLUMNS, rows)]),
    ...(all > rows.length ? ['', `${plural(all - rows.length, 'row')} more; see --limit`] : []),
  ].join('\n');
}
