import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { isDay } from '../core/days.ts';
import { usageError } from '../core/errors.ts';
import { checkNamed } from '../jobs/quality/checks/index.ts';
import { type Finding, listFindings, SEVERITIES } from '../load/state/findings.ts';
import { parseChoices } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { type Column, count, print, printJson, table } from './output.ts';

const COLUMNS: readonly Column<Finding>[] = [
  { head: 'date', cell: ({ date }) => date },
  { head: 'severity', cell: ({ severity }) => severity },
  { head: 'check', cell: ({ check }) => check },
  { head: 'exchange', cell: ({ exchange }) => exchange },
  { head: 'instrument', cell: ({ instrument }) => instrument },
  { head: 'expected', cell: ({ expected }) => expected },
  { head: 'found', cell: ({ found }) => found },
];

const RESOLVED: Column<Finding> = { head: 'resolved', cell: ({ resolvedAt }) => resolvedAt };

interface Flags {
  readonly check?: string;
  readonly severity?: string;
  readonly from?: string;
  readonly to?: string;
  readonly resolved?: boolean;
  readonly limit: string;
  readonly json?: boolean;
}

export function findingsCommand(program: Command, cli: Cli): Command {
  return program
    .command('findings')
    .description('What "eod reconcile" found wrong and still stands, the newest days first.')
    .option('--check <name>', 'only of this check')
    .option('--severity <list>', `only of these severities: ${SEVERITIES.join(', ')}`)
    .option('--from <day>', 'from this day on, YYYY-MM-DD')
    .option('--to <day>', 'up to this day, YYYY-MM-DD')
    .option('--resolved', 'also what a later look found no more')
    .option('--limit <n>', 'how many', '100')
    .option('--json', 'print one JSON document: a list of findings')
    .addHelpText(
      'after',
      examples('eod findings', 'eod findings --check previous_close --severity error,warning --json'),
    )
    .action((flags: Flags) => findings(cli, flags));
}

async function findings(cli: Cli, flags: Flags): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(flags.limit)) {
    throw usageError(`--limit: "${flags.limit}" is not a whole number from 1 to 999999`);
  }
  const filter = {
    check: flags.check === undefined ? undefined : checkNamed(flags.check).name,
    severity:
      flags.severity === undefined
        ? undefined
        : parseChoices('--severity', flags.severity, SEVERITIES, 'severity'),
    from: day('--from', flags.from),
    to: day('--to', flags.to),
    resolved: flags.resolved,
    limit: Number(flags.limit),
  };
  if (filter.from !== undefined && filter.to !== undefined && filter.from > filter.to) {
    throw usageError(`--from ${filter.from} is after --to ${filter.to}: the range is reversed`);
  }
  const context = await openContext(cli.life, loadConfig());
  const { total, findings: listed } = await listFindings(context.db.drizzle, filter);
  if (flags.json === true) return printJson(listed);
  if (total === 0) return print('no findings ("eod reconcile" looks for them)');
  const more =
    total > listed.length ? `\n\n${count(listed.length)} of ${count(total)}; --limit shows more` : '';
  print(`${table(flags.resolved === true ? [...COLUMNS, RESOLVED] : COLUMNS, listed)}${more}`);
}

function day(flag: string, text: string | undefined): string | undefined {
  if (text !== undefined && !isDay(text)) {
    throw usageError(`${flag}: "${text}" is not a day; write it as 2025-02-27`);
  }
  return text;
}
