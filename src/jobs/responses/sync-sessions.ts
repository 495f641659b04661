import type { Calendar } from '../../calendar/calendar.ts';
import { today } from '../../core/clock.ts';
import { addDays, type Day, type DayRange } from '../../core/days.ts';
import { EXCHANGES, type Pair } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { BHAV_COPY } from '../../declaration/operation.ts';
import { countValues } from '../../declaration/rows.ts';
import type { Extracted } from '../../extract/types.ts';
import {
  digestStoredTradingDays,
  digestTradingDays,
  readObservedTradingDays,
  readStoredRange,
  removeOtherTradingDays,
  type TradingDayRow,
  writeTradingDays,
} from '../../state/sessions.ts';
import type { Context } from '../context.ts';

/** First day of the reviewed calendar data. */
const FIRST_DAY: Day = '2015-01-01';

type TradingDaysOf = Pick<Context, 'db' | 'calendar'>;
type TradingDaysContext = TradingDaysOf & Pick<Context, 'clock' | 'config'>;

/**
 * Brings the trading days in the database up to date with the calendar, at least from the first to the last one that is
 * stored, and adds the observed trading days to the calendar. Usually nothing differs.
 *
 * @param from a first day to compare, if it is earlier.
 */
export async function syncTradingDays(context: TradingDaysContext, from: Day = FIRST_DAY): Promise<void> {
  const { db, calendar, clock, config } = context;
  const stored = await readStoredRange(db.drizzle);
  const now = today(clock, config.EOD_TIMEZONE);
  const [first = FIRST_DAY] = [
    from,
    FIRST_DAY,
    addDays(now, -config.EOD_HISTORY_DAYS),
    stored?.from ?? from,
  ].sort();
  const last = stored !== null && stored.to > now ? stored.to : now;
  const range = { from: first, to: `${last.slice(0, 4)}-12-31` };
  const rows = listedTradingDays(calendar.listed, range);
  if (digestTradingDays(rows) !== (await digestStoredTradingDays(db.drizzle, range))) {
    await writeTradingDays(db.drizzle, rows);
    await removeOtherTradingDays(db.drizzle, rows, range);
  }
  await learnTradingDays(context);
}

const listedTradingDays = (calendar: Calendar, { from, to }: DayRange): TradingDayRow[] =>
  EXCHANGES.flatMap((exchange) =>
    calendar.tradingDays(exchange, from, to).map((day) => ({
      exchange,
      day,
      kind: calendar.isSpecial(exchange, day) ? ('special' as const) : ('session' as const),
    })),
  );

/** Adds the trading days that any process has observed to the calendar. */
export async function learnTradingDays({ db, calendar }: TradingDaysOf): Promise<void> {
  const observed = await readObservedTradingDays(db.drizzle);
  calendar.learn(observed.filter(({ exchange, day }) => !calendar.listed.isTradingDay(exchange, day)));
}

/**
 * The days that a bhav copy shows to be trading days (pure): requested days of which it has rows, and a day to which at
 * least half of its rows belong. A single record with another date shows nothing.
 */
export function listTradingDays(
  operation: string,
  requested: DayRange,
  { batches }: Pick<Extracted, 'batches'>,
): Day[] {
  if (operation !== BHAV_COPY) return [];
  const rows = new Map<Day, number>();
  let all = 0;
  for (const batch of batches) {
    const column = batch.table.dateColumn;
    if (column === null) continue;
    for (const [value, records] of countValues(batch.rows, column)) {
      rows.set(String(value), (rows.get(String(value)) ?? 0) + records);
      all += records;
    }
  }
  return [...rows.keys()]
    .filter((day) => (requested.from <= day && day <= requested.to) || 2 * (rows.get(day) ?? 0) >= all)
    .sort();
}

/**
 * The years of some ranges that the calendar has no data for, so that Monday to Friday is assumed; consecutive ones as a
 * range: `BSE 1776 to 2014`.
 */
export function unknownYears(
  calendar: Calendar,
  ranges: readonly (DayRange & { readonly exchange: string })[],
): string[] {
  return [...groupBy(ranges, ({ exchange }) => exchange)].flatMap(([exchange, ofExchange]) => {
    const spans: { first: number; last: number }[] = [];
    const yearOf = (day: Day) => Number(day.slice(0, 4));
    const years = ofExchange.flatMap(({ from, to }) =>
      Array.from({ length: yearOf(to) - yearOf(from) + 1 }, (_, at) => yearOf(from) + at),
    );
    for (const year of [...new Set(years)].sort((a, b) => a - b)) {
      const before = spans.at(-1);
      if (calendar.knows(exchange, year)) continue;
      if (before?.last === year - 1) before.last = year;
      else spans.push({ first: year, last: year });
    }
    return spans.map(({ first, last }) => `${exchange} ${first}${last === first ? '' : ` to ${last}`}`);
  });
}

/**
 * Stores days with a bhav copy as trading days if the calendar lists them as closed. Other processes read them from
 * there. Must be called before the coverage of the response is determined, so that it includes the day.
 */
export async function noteTradingDays(
  context: Context,
  window: DayRange & Pair,
  extracted: Extracted,
): Promise<void> {
  const { calendar, db, log } = context;
  const { operation, exchange } = window;
  const days = listTradingDays(operation, window, extracted);
  const unlisted = days.filter((day) => !calendar.isTradingDay(exchange, day));
  if (unlisted.length === 0) return;
  const rows = unlisted.map((day) => ({ exchange, day, kind: 'observed' as const }));
  for (const { day } of await writeTradingDays(db.drizzle, rows)) {
    log.warn(
      { exchange, day, listedAs: calendar.listed.kindOf(exchange, day) },
      'prices came for a day that the calendar lists as closed: it is a trading day from now on',
    );
  }
  await syncTradingDays(context);
}
