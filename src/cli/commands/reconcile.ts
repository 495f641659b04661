import { clockOf, exampleDays, today } from '../../core/clock.ts';
import { addDays, type DayRange } from '../../core/days.ts';
import type { CheckResult } from '../../quality/check-quality.ts';
import { EXIT, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { day, parseOpenRange, parseRange, SEVERITIES, word } from '../options.ts';
import { type Column, memberColumns, plural, table } from '../output.ts';

const CHECK_COLUMNS: readonly Column<CheckResult>[] = [
  ...memberColumns<CheckResult>('check', 'severity', 'open'),
  { head: 'new', cell: ({ fresh }) => fresh },
  ...memberColumns<CheckResult>('resolved'),
];

const example = exampleDays();

export default defineCommand({
  path: 'reconcile',
  group: 'Repair',
  summary: 'Check the stored data sets against each other; contradictions are stored as findings.',
  options: {
    from: day('first day, YYYY-MM-DD (default: EOD_HISTORY_DAYS before the last day)'),
    to: day('last day, YYYY-MM-DD (default: today)'),
    failOn: word(
      '<severity>',
      'exit with 1 if a finding is open that is at least this severe: info, warning, error',
      SEVERITIES,
      'severity',
    ),
  },
  examples: ['eod reconcile', `eod reconcile --from ${example.from} --to ${example.to} --fail-on error`],
  async run(cli, { failOn, json, ...values }) {
    const { checkQuality } = await import('../../quality/check-quality.ts');
    const { severities } = await import('../../quality/index.ts');
    const { readCheckedDays } = await import('../../state/findings.ts');
    const { openContext } = await import('../open-context.ts');
    const config = await loadSettings(cli);
    // A mistake in EOD_FINDING_SEVERITY is reported before anything is opened.
    severities(config);
    const clock = clockOf(config);
    // Read first, because the default of the first day depends on it.
    const { to = today(clock, config.EOD_TIMEZONE) } = parseOpenRange({ to: values.to }, { config, clock });
    const from = values.from ?? addDays(to, -config.EOD_HISTORY_DAYS);
    const range = parseRange({ from, to }, { config, clock });
    const context = await openContext(cli, { config });
    const results = await checkQuality(context, range);
    const { loaded } = await readCheckedDays(context.db.drizzle, range);
    if (json) printJson(cli, { ...range, days: loaded, checks: results });
    else print(cli, summary(range, loaded, results));
    const severe = failOn === undefined ? [] : SEVERITIES.slice(SEVERITIES.indexOf(failOn));
    const isSevere = ({ open, severity }: CheckResult) => open > 0 && severe.includes(severity);
    if (results.some(isSevere)) cli.exitCode = EXIT.failed;
  },
});

function summary({ from, to }: DayRange, days: number, results: readonly CheckResult[]): string {
  const open = results.filter((result) => result.open > 0).length;
  const nothing = days === 0 ? 'no prices of these days are loaded, so little was compared' : 'nothing found';
  const tail =
    open === 0
      ? nothing
      : `${open} of ${results.length} checks found something: "eod findings" lists what, docs/completeness.md explains it`;
  return `${table(CHECK_COLUMNS, results)}\n\n${from} to ${to}, ${plural(days, 'day')} with prices: ${tail}`;
}
