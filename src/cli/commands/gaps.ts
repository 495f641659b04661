import { exampleDays, systemClock } from '../../core/clock.ts';
import { groupBy } from '../../core/iterables.ts';
import { observedTradingDayText } from '../../core/wording.ts';
import { isInFiles } from '../../extract/files/formats.ts';
import type { Gap, Gaps } from '../../jobs/runs/read-gaps.ts';
import { coveredSets, findCovered, hasTradingDays, pairTitle, titleOf } from '../../operations/registry.ts';
import type { ImportedList } from '../../state/coverage/freshness.ts';
import { gapText } from '../../state/coverage/gap-reasons.ts';
import { EXIT, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { day, exchangeOption, flag, several } from '../options.ts';
import { type Column, memberColumns, plural, rangeText, table } from '../output.ts';
import { parseScope } from '../parse-request.ts';
import { dataSetColumns, logUnknownYears } from '../shared-texts.ts';

const COLUMNS: readonly Column<Gap>[] = [
  ...dataSetColumns<Gap>(),
  ...memberColumns<Gap>('from', 'to', 'sessions'),
  { head: 'why', cell: gapText },
];

export const ONLY_THESE = 'only these operations (default: all)';

/** Where to look for gaps; `parseScope` reads it. */
export const scopeOptions = {
  from: day('first day (default: the first day loaded, for each operation and exchange)'),
  to: day('last day (default: the last published trading day; without requests, the last imported)'),
  exchange: exchangeOption,
};

const { from, to } = exampleDays();

export default defineCommand({
  path: 'gaps',
  group: 'Look',
  summary:
    'List trading days that should be loaded and are not, and why. Exit code 1 if there are any. The verb loads them.',
  args: { operations: several(ONLY_THESE) },
  options: {
    ...scopeOptions,
    all: flag('also list trading days that are not published yet, which are not gaps'),
  },
  examples: [
    'eod gaps',
    `eod gaps GetBhavCopyCM --exchange NSE --from ${from} --to ${to}`,
    'eod gaps --json',
    'eod gaps fill --dry-run',
  ],
  async run(cli, { all, json, ...values }) {
    const { readGaps } = await import('../../jobs/runs/read-gaps.ts');
    const { readLists } = await import('../../state/coverage/freshness.ts');
    const { openContext } = await import('../open-context.ts');
    const config = await loadSettings(cli);
    // Before a database is opened, so that a mistake is reported at once.
    const scope = parseScope(values, findCovered, { config, clock: systemClock });
    const context = await openContext(cli, { config });
    const { pending, ...report } = await readGaps(context, scope);
    if (json) printJson(cli, all ? { ...report, pending } : report);
    else {
      const byTradingDay = coveredSets.filter(hasTradingDays).map(({ name }) => ({ operation: name }));
      const lists = values.operations.length === 0 ? await readLists(context, byTradingDay) : [];
      print(cli, gapsText(report, all ? pending : [], lists));
    }
    logUnknownYears(cli, report.unknownYears);
    cli.exitCode = report.total > 0 ? EXIT.failed : EXIT.done;
  },
});

/** What there is to say of a range in which nothing can be missing. */
export const noTradingDayText = ({ from, to }: Pick<Gaps, 'from' | 'to'>) =>
  `no trading day from ${from} to ${to}`;

/** Where data sets begin or end on other days: the days of each, outside of which nothing is compared. */
function ownRanges(ranges: Gaps['ranges']): string[] {
  const byRange = groupBy(ranges, rangeText);
  if (byRange.size < 2) return [];
  return [
    'each data set from its first day to its last:',
    ...[...byRange].sort().map(([range, pairs]) => `  ${range}: ${pairs.map(pairTitle).join('; ')}`),
  ];
}

/** @param lists of which no trading day is known. */
function gapsText(
  report: Omit<Gaps, 'pending'>,
  pending: readonly Gap[],
  lists: readonly ImportedList[],
): string {
  const { from, to, gaps, total, hasTradingDay } = report;
  const range = from === null || to === null ? '' : `, ${from} to ${to}`;
  const listed = [...gaps, ...pending];
  if (listed.length === 0 && !hasTradingDay) return noTradingDayText(report);
  return [
    ...(listed.length === 0 ? [] : [table(COLUMNS, listed), '']),
    ...(total === 0 && from === null ? ['no trading day is loaded yet, so none is missing'] : []),
    ...(total === 0 && from !== null ? [`nothing is missing${range}`, ...ownRanges(report.ranges)] : []),
    ...(total > 0
      ? [`${plural(total, 'trading day')} missing in ${plural(gaps.length, 'range')}${range}`]
      : []),
    ...(lists.length === 0
      ? []
      : [
          `not checked for gaps, because these have no daily schedule: ${[...new Set(lists.map(({ operation }) => titleOf(operation)))].join('; ')}`,
        ]),
    ...(gaps.some(({ reason, operation }) => reason === 'not_imported' && isInFiles(operation))
      ? ['import the files of these days with eod import']
      : []),
    ...report.observed.map(observedTradingDayText),
  ].join('\n');
}
