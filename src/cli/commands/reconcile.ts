import { clockOf, today } from '../../core/clock.ts';
import { addDays, type DayRange } from '../../core/days.ts';
import { type CheckResult, checkQuality } from '../../jobs/quality/check-quality.ts';
import { severities } from '../../load/market/checks/index.ts';
import { readCheckedDays, SEVERITIES } from '../../load/state/findings.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import type { Check } from '../doctor/check.ts';
import { openContext } from '../open-context.ts';
import { parseChoices, parseOpenRange, parseRange, type RangeFlags } from '../options.ts';
import { type Column, columnsOf, plural, table } from '../output.ts';
import { storeChecks } from '../store-checks.ts';

const CHECK_COLUMNS: readonly Column<CheckResult>[] = [
  ...columnsOf<CheckResult>('check', 'severity', 'open'),
  { head: 'new', cell: ({ fresh }) => fresh },
  ...columnsOf<CheckResult>('resolved'),
];

interface ReconcileFlags extends RangeFlags, JsonFlag {
  readonly failOn?: string;
}

export async function reconcile(cli: Cli, flags: ReconcileFlags): Promise<void> {
  const config = await loadSettings(cli);
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
  const context = await openContext(cli, { config });
  const results = await checkQuality(context, range);
  const { loaded } = await readCheckedDays(context.db.drizzle, range);
  const store = await storeChecks(context.db);
  if (flags.json === true) printJson(cli, { ...range, days: loaded, checks: results, store });
  else print(cli, [summary(range, loaded, results), ...store.flatMap(storeText)].join('\n\n'));
  const severe = failOn === undefined ? [] : SEVERITIES.slice(SEVERITIES.indexOf(failOn));
  const found = [
    ...results.flatMap(({ open, severity }) => (open > 0 ? [severity] : [])),
    ...store.map(({ state }) => (state === 'failed' ? 'error' : state)),
  ];
  if (severe.some((severity) => found.includes(severity))) cli.exitCode = EXIT.failed;
}

/** What is wrong with what is stored, and what to do about it. */
const storeText = ({ name, found, remedy }: Check): string[] =>
  remedy === null ? [] : [`${name}: ${found}\nWhat to do: ${remedy}`];

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
