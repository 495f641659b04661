import { addDays, type DayRange } from '../core/days.ts';
import { defineOperation } from '../declaration/define-operation.ts';
import type { InstrumentRequest, RequestInput } from '../declaration/operation.ts';
import {
  forBothNatures,
  natureOption,
  QUARTERS,
  ratioFactShape,
  ratioShape,
} from './tables/financial-ratios.ts';

/** A quarter of the Indian financial year, which starts in April and is named by the year in which it starts. */
interface Quarter extends DayRange {
  readonly year: string;
  readonly period: 'QJ' | 'QS' | 'QD' | 'QM';
}

/** The quarter that contains a day. `QM` of 2024 ended in March 2025. */
export function findQuarter(day: string): Quarter {
  const year = Number(day.slice(0, 4));
  const month = Number(day.slice(5, 7));
  if (month <= 3) return { year: `${year - 1}`, period: 'QM', from: `${year}-01-01`, to: `${year}-03-31` };
  if (month <= 6) return { year: `${year}`, period: 'QJ', from: `${year}-04-01`, to: `${year}-06-30` };
  if (month <= 9) return { year: `${year}`, period: 'QS', from: `${year}-07-01`, to: `${year}-09-30` };
  return { year: `${year}`, period: 'QD', from: `${year}-10-01`, to: `${year}-12-31` };
}

/** The quarters that overlap a range of days, oldest first. */
function quartersOverlapping(from: string, to: string): Quarter[] {
  const quarters: Quarter[] = [];
  for (let day = from; day <= to; ) {
    const quarter = findQuarter(day);
    quarters.push(quarter);
    day = addDays(quarter.to, 1);
  }
  return quarters;
}

/** The quarters with which periods end that begin with the financial year. */
const LAST_QUARTER: Readonly<Record<string, string>> = { M6: 'QS', M9: 'QD', M12: 'QM' };

/** The days of a period of a financial year; null if it is not known which these are. */
export function findDays(period: string, year: string | undefined): DayRange | null {
  if (year === undefined) return null;
  const quarters = quartersOverlapping(`${year}-04-01`, `${Number(year) + 1}-03-31`);
  const last = quarters.find((quarter) => quarter.period === (LAST_QUARTER[period] ?? period));
  if (last === undefined) return null;
  return { from: period in LAST_QUARTER ? `${year}-04-01` : last.from, to: last.to };
}

/**
 * The requests of options that select figures on their own, whatever the range of days: a type without days, a
 * period with its year, or a period such as `Latest`. Null if the range selects them.
 */
function selectedByOptions({ today, options }: RequestInput): readonly InstrumentRequest[] | null {
  const { type = 'Quarter', period, year } = options;
  if (type === 'EOD' || (type === 'Quarter' && period === undefined)) return null;
  const isQuarter = period !== undefined && QUARTERS.includes(period);
  // Without its year, it is that quarter of each year of the range.
  if (type === 'Quarter' && isQuarter && year === undefined) return null;
  const days = type === 'Quarter' && period !== undefined ? findDays(period, year) : null;
  if (days !== null && days.to > today) return [];
  const chosen = Object.fromEntries(
    Object.entries({ period, year }).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const params = { ...chosen, variant: type.toLowerCase(), type };
  const requested = forBothNatures({ variant: '', from: days?.from ?? today, to: days?.to ?? today, params });
  if (type === 'Quarter' && isQuarter) return requested;
  // Another period may have the last day of a quarter, and is another request.
  const name = type === 'Realtime' ? params.variant : `${params.variant}:${period ?? ''}`;
  return requested.map((request) => ({
    ...request,
    variant: `${name}/${request.params.natureOfReport}`,
    always: true,
  }));
}

/**
 * A quarter is requested from its last day on. A nightly run also requests the quarter that ended last, because its
 * figures are published during the next one. End-of-day ratios come from GetFinRatioEOD; here they are requested only
 * with the option `type` set to EOD.
 */
function requests(input: RequestInput): readonly InstrumentRequest[] {
  const { tradingDays, from, to, today, live, options } = input;
  const selected = selectedByOptions(input);
  if (selected !== null) return selected;
  const requestsFor = (from: string, to: string, params: Record<string, string> & { variant: string }) =>
    forBothNatures({ variant: '', from, to, params });
  const ended = addDays(findQuarter(today).from, -1);
  const quarters = quartersOverlapping(live && ended < from ? ended : from, to).filter(
    ({ to }) => to <= today,
  );
  return [
    ...(options.type === 'EOD'
      ? tradingDays.flatMap((day) => requestsFor(day, day, { variant: 'eod', type: 'EOD' }))
      : []),
    ...quarters.flatMap((quarter) =>
      requestsFor(quarter.from, quarter.to, {
        variant: 'quarter',
        type: 'Quarter',
        period: quarter.period,
        year: quarter.year,
      }),
    ),
    ...(live
      ? requestsFor(today, today, { variant: 'realtime', type: 'Realtime' }).map((request) => ({
          ...request,
          always: true,
        }))
      : []),
  ];
}

export default defineOperation({
  name: 'GetFinancialRatios',
  title: 'Quarterly ratios',
  group: 'fundamentals',
  summary: 'Financial ratios: quarterly, real time in nightly runs; end of day only by type EOD',
  exchanges: ['BSE'],
  request: {
    dates: 'day',
    datedWhen: ({ params }) => params.type === 'EOD',
    instruments: 'one',
    dTFormat: false,
    options: [
      {
        param: 'type',
        meaning: 'only this kind of ratios; Quarter, and at night Realtime, when not given',
        values: ['EOD', 'Quarter', 'Realtime'],
        isFilter: false,
      },
      natureOption,
      {
        param: 'period',
        meaning: 'only this quarter or period; with the year, whatever the range of days',
        values: [...QUARTERS, 'M6', 'M9', 'M12', 'Latest'],
        isFilter: false,
      },
      {
        param: 'year',
        meaning: 'only this financial year, named by its first year',
        form: { pattern: '(19|20)[0-9]{2}', description: 'a year such as 2024' },
        isFilter: false,
      },
    ],
  },
  shapes: [ratioShape, ratioFactShape],
  windows: { per: 'instrument', days: 'quarters', requests },
  publishedAt: '22:00',
  schedule: { at: '22:30', on: 'daily', hasLookback: false, order: 3 },
  emptyIsNormal: true,
});
