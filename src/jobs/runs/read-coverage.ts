import { today } from '../../core/clock.ts';
import { type Day, type DayRange, eachDay } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { dataSetNamed, hasTradingDays } from '../../operations/registry.ts';
import {
  type GapReason,
  listExpectedPairs,
  readTradingDayRecords,
} from '../../state/coverage/completeness.ts';
import { readKnownDay, summarizeDays } from '../../state/coverage/covered-days.ts';
import { listSuspiciousWindows } from '../../state/windows/suspicious.ts';
import type { Context } from '../context.ts';

/** What is known about a day of a data set. */
export type DayKind =
  /** Its trading day is loaded. */
  | 'complete'
  /** Its trading day has no records, as expected. */
  | 'empty'
  /** A weekday on which the exchange was closed. */
  | 'holiday'
  /** Its trading day should be loaded and is not. */
  | 'missing'
  /** A response lacked more rows than may be withdrawn: a person should look at it. */
  | 'suspicious'
  /** Its data cannot be expected yet. */
  | 'pending'
  /** Nothing is expected: a weekend, a day before the first loaded one, or a day to come. */
  | 'nothing';

export interface CoverageDay {
  readonly day: Day;
  readonly kind: DayKind;
  /** Why it is missing; null for every other kind. */
  readonly reason: GapReason | null;
  /** How much of it is there, and what the source or the failure said; null for every other kind. */
  readonly detail: string | null;
  readonly records: number;
}

/** Every day of a range for one data set, ascending. */
export interface DataSetDays extends Pair {
  readonly days: readonly CoverageDay[];
}

/** At most this many windows with suspicious responses are read. */
const MAX_SUSPICIOUS = 1_000;

/** A window whose response is suspicious, with the reasons. */
type SuspiciousWindow = Awaited<ReturnType<typeof listSuspiciousWindows>>[number];

/** The data sets to show: those that are expected, and any other operation that was ever requested. */
export const listDataSets = (context: Context): Promise<Pair[]> =>
  listExpectedPairs(context, { expected: 'scheduled', others: true });

/** What is known about each day of a range, for each of these data sets. */
export async function readDays(
  context: Context,
  pairs: readonly Pair[],
  { from, to }: DayRange,
): Promise<DataSetDays[]> {
  const { db, config, clock, calendar } = context;
  const now = today(clock, config.EOD_TIMEZONE);
  const [tradingDays, summaries, suspicious, firsts] = await Promise.all([
    readTradingDayRecords(context, { expected: 'scheduled', others: true, from, to }),
    summarizeDays(db.drizzle, { pairs: pairs.filter((pair) => !isByTradingDay(pair)), from, to }),
    listSuspiciousWindows(db.drizzle, { from, to }, MAX_SUSPICIOUS),
    Promise.all(pairs.map((pair) => readKnownDay(db.drizzle, pair, 'first'))),
  ]);
  const tradingDayOf = new Map(
    tradingDays.map((tradingDay) => [`${pairName(tradingDay)} ${tradingDay.day}`, tradingDay]),
  );
  const summaryOf = new Map(summaries.map((summary) => [`${pairName(summary)} ${summary.day}`, summary]));
  return pairs.map((pair, at) => {
    const first = firsts[at] ?? null;
    const ofPair = suspicious.filter((window) => pairName(window) === pairName(pair));
    const days = eachDay(from, to).map((day): CoverageDay => {
      const tradingDay = tradingDayOf.get(`${pairName(pair)} ${day}`);
      const summary = summaryOf.get(`${pairName(pair)} ${day}`);
      const records = tradingDay?.records ?? summary?.records ?? 0;
      const known = { day, reason: null, detail: null, records };
      if (day > now) return { ...known, kind: 'nothing' };
      if (ofPair.some((window) => covers(window, day)) && tradingDay !== undefined)
        return { ...known, kind: 'suspicious' };
      if (tradingDay === undefined) {
        // Data without dates is complete on the days on which it was requested.
        if (summary?.isLoaded === true) return { ...known, kind: 'complete' };
        const isHoliday = isByTradingDay(pair) && calendar.kindOf(pair.exchange, day) === 'holiday';
        return { ...known, kind: isHoliday ? 'holiday' : 'nothing' };
      }
      if (tradingDay.state === 'complete') {
        return { ...known, kind: records === 0 ? 'empty' : 'complete' };
      }
      if (tradingDay.state === 'pending') return { ...known, kind: 'pending' };
      const isBefore = first === null || day < first;
      const wasRequested =
        tradingDay.reason !== null &&
        !['not_requested', 'not_imported', 'beyond_history'].includes(tradingDay.reason);
      return isBefore && !wasRequested
        ? { ...known, kind: 'nothing' }
        : { ...known, kind: 'missing', reason: tradingDay.reason, detail: tradingDay.detail };
    });
    return { ...pair, days };
  });
}

const isByTradingDay = ({ operation }: Pair) => hasTradingDays(dataSetNamed(operation));

const covers = ({ from, to }: SuspiciousWindow, day: Day) => from <= day && day <= to;

/** The years that can be looked at, the newest first. */
export interface KnownYears {
  readonly years: readonly number[];
  /** The last year of which anything is loaded; null if nothing is. */
  readonly latest: number | null;
}

/** The years from the first in which any of these data sets has coverage to the current one. */
export async function knownYears(context: Context, pairs: readonly Pair[]): Promise<KnownYears> {
  const days = await Promise.all(
    pairs.flatMap((pair) => [
      readKnownDay(context.db.drizzle, pair, 'first'),
      readKnownDay(context.db.drizzle, pair, 'last'),
    ]),
  );
  const known = days.filter((day) => day !== null).sort();
  const now = today(context.clock, context.config.EOD_TIMEZONE);
  const year = (day: Day | undefined) => Number((day ?? now).slice(0, 4));
  const last = Math.max(year(now), year(known.at(-1)));
  const years = Array.from({ length: last - year(known[0]) + 1 }, (_, back) => last - back);
  return { years, latest: known.length === 0 ? null : year(known.at(-1)) };
}
