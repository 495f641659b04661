import type { Command } from 'commander';
import { systemClock, today } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import { addDays } from '../core/days.ts';
import { type CheckResult, checkQuality } from '../jobs/quality/check-quality.ts';
import { severities } from '../jobs/quality/checks/index.ts';
import { SEVERITIES } from '../load/state/findings.ts';
import { parseChoices, parseRange } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { type Column, print, printJson, table } from './output.ts';

const COLUMNS: readonly Column<CheckResult>[] = [
  { head: 'check', cell: ({ check }) => check },
  { head: 'severity', cell: ({ severity }) => severity },
  { head: 'open', cell: ({ open }) => open },
  { head: 'new', cell: ({ fresh }) => fresh },
  { head: 'resolved', cell: ({ resolved }) => resolved },
];

interface Flags {
  readonly from?: string;
  readonly to?: string;
  readonly failOn?: string;
  readonly json?: boolean;
}

export function reconcileCommand(program: Command, cli: Cli): Command {
  return program
    .command('reconcile')
    .description('Let the stored data sets check one another; what is wrong is kept as findings.')
    .option('--from <day>', 'first day, YYYY-MM-DD (default: EOD_HISTORY_DAYS before the last)')
    .option('--to <day>', 'last day, YYYY-MM-DD (default: today)')
    .option(
      '--fail-on <severity>',
      `exit with 1 when something this severe is open: ${SEVERITIES.join(', ')}`,
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples('eod reconcile', 'eod reconcile --from 2025-02-20 --to 2025-02-27 --fail-on error'),
    )
    .action((flags: Flags) => reconcile(cli, flags));
}

async function reconcile(cli: Cli, flags: Flags): Promise<void> {
  const config = loadConfig();
  severities(config);
  const clock = systemClock;
  const to = flags.to ?? today(clock, config.EOD_TIMEZONE);
  const from = flags.from ?? defaultFrom(to, config.EOD_HISTORY_DAYS);
  const range = parseRange(from, to, { config, clock });
  const [failOn] =
    flags.failOn === undefined ? [] : parseChoices('--fail-on', flags.failOn, SEVERITIES, 'severity');
  const context = await openContext(cli.life, config);
  const results = await checkQuality(context, range);
  if (flags.json === true) printJson({ ...range, checks: results });
  else print(summary(range, results));
  const severe = failOn === undefined ? [] : SEVERITIES.slice(SEVERITIES.indexOf(failOn));
  if (results.some(({ open, severity }) => open > 0 && severe.includes(severity))) cli.exitCode = 1;
}

/** A day that is none is named by `parseRange`. */
function defaultFrom(to: string, days: number): string {
  return Number.isNaN(Date.parse(to)) ? to : addDays(to, -days);
}

function summary({ from, to }: { from: string; to: string }, results: readonly CheckResult[]): string {
  const open = results.filter((result) => result.open > 0).length;
  const tail =
    open === 0
      ? 'nothing found'
      : `${open} of ${results.length} checks found something: "eod findings" lists it, docs/data-quality.md explains it`;
  return `${table(COLUMNS, results)}\n\n${from} to ${to}: ${tail}`;
}
