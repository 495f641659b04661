import { clockOf, today } from '../../core/clock.ts';
import { addDays, type DayRange } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import type { CheckResult } from '../../jobs/quality/check-quality.ts';
import type { CheckedDays, Finding } from '../../load/state/findings.ts';
import { type Cli, type Commands, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import {
  addRange,
  exampleDays,
  examples,
  jsonOption,
  limitOption,
  listOf,
  parseChoices,
  parseListed,
  parseOpenRange,
  parseRange,
  type RangeFlags,
} from '../options.ts';
import { type Column, columnsOf, count, momentText, plural, table } from '../output.ts';

const FINDING_COLUMNS: readonly Column<Finding>[] = [
  { head: 'finding', cell: ({ id }) => id },
  ...columnsOf<Finding>('date', 'severity', 'check', 'exchange', 'instrument', 'expected', 'found'),
];

const RESOLVED: Column<Finding> = { head: 'resolved', cell: ({ resolvedAt }) => resolvedAt };

const CHECK_COLUMNS: readonly Column<CheckResult>[] = [
  ...columnsOf<CheckResult>('check', 'severity', 'open'),
  { head: 'new', cell: ({ fresh }) => fresh },
  ...columnsOf<CheckResult>('resolved'),
];

interface FindingFlags extends RangeFlags, JsonFlag {
  readonly check?: string;
  readonly severity?: string;
  readonly resolved?: boolean;
  readonly limit: number;
}

interface ReconcileFlags extends RangeFlags, JsonFlag {
  readonly failOn?: string;
}

export const commands: Commands = {
  reconcile(command, cli) {
    const { from, to } = exampleDays();
    addRange(command, {
      from: 'first day, YYYY-MM-DD (default: EOD_HISTORY_DAYS before the last day)',
      to: 'last day, YYYY-MM-DD (default: today)',
    });
    command
      .option(
        '--fail-on <severity>',
        'exit with 1 if a finding is open that is at least this severe: info, warning, error',
      )
      .addOption(jsonOption())
      .addHelpText(
        'after',
        examples('eod reconcile', `eod reconcile --from ${from} --to ${to} --fail-on error`),
      )
      .action((flags: ReconcileFlags) => reconcile(cli, flags));
  },
  findings(command, cli) {
    command.addHelpText(
      'after',
      examples(
        'eod findings',
        'eod findings 3',
        'eod findings --check previous_close --severity error,warning --json',
      ),
    );
    const list = listOf(command, 'the number of a finding').argument(
      '[id]',
      'number of a finding, to show that one',
    );
    addRange(list, {
      from: 'only days from this one on, YYYY-MM-DD',
      to: 'only days up to this one, YYYY-MM-DD',
    })
      .option('--check <name>', 'only findings of this check')
      .option('--severity <list>', 'only these severities: info, warning, error')
      .option('--resolved', 'also findings that a later check resolved')
      .addOption(limitOption(100))
      .addOption(jsonOption('a list of findings'))
      .action((id: string | undefined, flags: FindingFlags) =>
        id === undefined
          ? listFindings(cli, flags)
          : showFinding(cli, parseListed(command, 'finding', id), flags),
      );
  },
};

async function listFindings(cli: Cli, flags: FindingFlags): Promise<void> {
  const findings = await import('../../load/state/findings.ts');
  const { parseCheckName } = await import('../../load/market/checks/index.ts');
  const { check, severity, resolved, limit } = flags;
  const filter = {
    check: check === undefined ? undefined : parseCheckName('--check', check),
    severity:
      severity === undefined
        ? undefined
        : parseChoices('--severity', severity, findings.SEVERITIES, 'severity'),
    ...parseOpenRange(flags),
    resolved,
    limit,
  };
  const { openContext } = await import('../open-context.ts');
  const { db } = await openContext(cli);
  const { total, findings: listed } = await findings.listFindings(db.drizzle, filter);
  if (flags.json === true) return printJson(cli, listed);
  if (total === 0) {
    const days = await findings.readCheckedDays(db.drizzle, filter);
    return print(cli, `no findings${days.loaded === 0 ? ': no bhav copy is loaded' : uncheckedText(days)}`);
  }
  const more =
    total > listed.length ? `\n\n${count(listed.length)} of ${count(total)}; --limit shows more` : '';
  const columns = resolved === true ? [...FINDING_COLUMNS, RESOLVED] : FINDING_COLUMNS;
  print(cli, `${table(columns, listed)}${more}`);
}

async function showFinding(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const stored = await import('../../load/state/findings.ts');
  const { checks } = await import('../../load/market/checks/index.ts');
  const { db, config } = await openContext(cli);
  const [finding] = (await stored.listFindings(db.drizzle, { id, resolved: true, limit: 1 })).findings;
  if (finding === undefined)
    throw usageError(`there is no finding ${id} ("eod findings" lists the open ones)`);
  if (flags.json === true) return printJson(cli, finding);
  const rule = checks().find(({ name }) => name === finding.check)?.rule ?? '';
  print(cli, findingText(finding, rule, config.EOD_TIMEZONE));
}

function findingText(finding: Finding, rule: string, timeZone: string): string {
  const { id, check, severity, operation, exchange, date, instrument, resolvedAt, runId } = finding;
  const at = (iso: string) => `${momentText(iso, timeZone)} (${timeZone})`;
  return [
    `finding ${id}: ${check}, ${severity}`,
    ...(rule === '' ? [] : [rule]),
    [operation, exchange, date, instrument].filter(Boolean).join(' '),
    `expected  ${finding.expected ?? 'nothing'}`,
    `found     ${finding.found ?? 'nothing'}`,
    `found at ${at(finding.foundAt)}${runId === null ? '' : `, after run ${runId}`}`,
    resolvedAt === null ? 'open' : `resolved at ${at(resolvedAt)}`,
  ].join('\n');
}

async function reconcile(cli: Cli, flags: ReconcileFlags): Promise<void> {
  const config = await loadSettings(cli);
  const { checkQuality } = await import('../../jobs/quality/check-quality.ts');
  const { severities } = await import('../../load/market/checks/index.ts');
  const { readCheckedDays, SEVERITIES } = await import('../../load/state/findings.ts');
  // A mistake in EOD_FINDING_SEVERITY is reported before anything is opened.
  severities(config);
  const clock = clockOf(config);
  // Before the first day is counted from it.
  const { to = today(clock, config.EOD_TIMEZONE) } = parseOpenRange(
    flags.to === undefined ? {} : { to: flags.to },
    { config, clock },
  );
  const from = flags.from ?? addDays(to, -config.EOD_HISTORY_DAYS);
  const range = parseRange({ from, to }, { config, clock });
  const [failOn] =
    flags.failOn === undefined ? [] : parseChoices('--fail-on', flags.failOn, SEVERITIES, 'severity');
  const { openContext } = await import('../open-context.ts');
  const context = await openContext(cli, { config });
  const results = await checkQuality(context, range);
  const { loaded } = await readCheckedDays(context.db.drizzle, range);
  if (flags.json === true) printJson(cli, { ...range, days: loaded, checks: results });
  else print(cli, `${summary(range, loaded, results)}${lostText(results)}`);
  const severe = failOn === undefined ? [] : SEVERITIES.slice(SEVERITIES.indexOf(failOn));
  if (results.some(({ open, severity }) => open > 0 && severe.includes(severity))) {
    cli.exitCode = EXIT.failed;
  }
}

/** What to do about days that were lost. */
const lostText = (results: readonly CheckResult[]): string =>
  results.some(({ check, open }) => check.startsWith('lost_day') && open > 0)
    ? '\n\nDays were lost: "eod doctor --offline" says how to load them again.'
    : '';

function summary({ from, to }: DayRange, days: number, results: readonly CheckResult[]): string {
  const open = results.filter((result) => result.open > 0).length;
  const nothing =
    days === 0 ? 'no bhav copy of these days is loaded, so little was compared' : 'nothing found';
  const tail =
    open === 0
      ? nothing
      : `${open} of ${results.length} checks found something: "eod findings" lists what, docs/data-quality.md explains it`;
  return `${table(CHECK_COLUMNS, results)}\n\n${from} to ${to}, ${plural(days, 'day')} with a bhav copy: ${tail}`;
}

/** Which days nobody can say anything about, and the command that checks them; empty if there are none. */
function uncheckedText({ unchecked, from, to }: CheckedDays): string {
  return unchecked === 0
    ? ''
    : `, but ${plural(unchecked, 'loaded day')} ${unchecked === 1 ? 'was' : 'were'} not checked:
eod reconcile --from ${from} --to ${to}`;
}
