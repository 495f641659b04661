import { clockOf, today } from '../../core/clock.ts';
import { addDays, type DayRange } from '../../core/days.ts';
import { type CheckResult, checkQuality } from '../../quality/check-quality.ts';
import { severities } from '../../quality/index.ts';
import { readCheckedDays, type Severity } from '../../state/findings.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, parseRange, type RangeFlags, SEVERITIES } from '../options.ts';
import { type Column, memberColumns, plural, table } from '../output.ts';

const CHECK_COLUMNS: readonly Column<CheckResult>[] = [
  ...memberColumns<CheckResult>('check', 'severity', 'open'),
  { head: 'new', cell: ({ fresh }) => fresh },
  ...memberColumns<CheckResult>('resolved'),
];

interface ReconcileFlags extends RangeFlags, JsonFlag {
  readonly failOn?: Severity;
}

export async function reconcile(cli: Cli, flags: ReconcileFlags): Promise<void> {
  const config = await loadSettings(cli);
  // A mistake in EOD_FINDING_SEVERITY is reported before anything is opened.
  severities(config);
  const clock = clockOf(config);
  // Read first, because the default of the first day depends on it.
  const { to = today(clock, config.EOD_TIMEZONE) } = parseOpenRange(
    flags.to === undefined ? {} : { to: flags.to },
    { config, clock },
  );
  const from = flags.from ?? addDays(to, -config.EOD_HISTORY_DAYS);
  const range = parseRange({ from, to }, { config, clock });
  const context = await openContext(cli, { config });
  const results = await checkQuality(context, range);
  const { loaded } = await readCheckedDays(context.db.drizzle, range);
  if (flags.json === true) printJson(cli, { ...range, days: loaded, checks: results });
  else print(cli, summary(range, loaded, results));
  const severe = flags.failOn === undefined ? [] : SEVERITIES.slice(SEVERITIES.indexOf(flags.failOn));
  const isSevere = ({ open, severity }: CheckResult) => open > 0 && severe.includes(severity);
  if (results.some(isSevere)) cli.exitCode = EXIT.failed;
}

function summary({ from, to }: DayRange, days: number, results: readonly CheckResult[]): string {
  const open = results.filter((result) => result.open > 0).length;
  const nothing = days === 0 ? 'no prices of these days are loaded, so little was compared' : 'nothing found';
  const tail =
    open === 0
      ? nothing
      : `${open} of ${results.length} checks found something: "eod findings" lists what, docs/completeness.md explains it`;
  return `${table(CHECK_COLUMNS, results)}\n\n${from} to ${to}, ${plural(days, 'day')} with prices: ${tail}`;
}
