import type { Calendar } from '../../calendar/calendar.ts';
import { today } from '../../core/clock.ts';
import { addDays, type Day, type DayRange } from '../../core/days.ts';
import { EXCHANGES, type Pair } from '../../core/exchanges.ts';
import { BHAV_COPY } from '../../declaration/operation.ts';
import { countValues } from '../../declaration/rows.ts';
import type { Extracted } from '../../extract/types.ts';
import { databaseError } from '../../postgres/database-errors.ts';
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
 * Stores days with a bhav copy as trading days if the calendar lists them as closed. Other processes read them from
 * there. Must be called before the coverage of the response is determined, so that it includes the day.
 */
async function observeTradingDays(
  context: TradingDaysContext & Pick<Context, 'log'>,
  exchange: string,
  days: readonly Day[],
): Promise<void> {
  const { calendar, db, log } = context;
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

/** A year of an exchange without calendar data, in which Monday to Friday is assumed. */
interface UnknownYear {
  readonly exchange: string;
  readonly year: number;
}

/** The years of a range that the calendar does not know. */
export function unknownYears(
  { calendar }: Pick<Context, 'calendar'>,
  exchanges: readonly string[],
  { from, to }: DayRange,
): UnknownYear[] {
  const unknownYears: UnknownYear[] = [];
  for (const exchange of exchanges) {
    for (let year = Number(from.slice(0, 4)); year <= Number(to.slice(0, 4)); year += 1) {
      if (!calendar.knows(exchange, year)) unknownYears.push({ exchange, year });
    }
  }
  return unknownYears;
}

/** Years as they are printed, consecutive ones as a range: `BSE 1776 to 2014`. @param years in order for each exchange. */
export function yearRanges(years: readonly UnknownYear[]): string[] {
  const ranges: { exchange: string; first: number; last: number }[] = [];
  for (const { exchange, year } of years) {
    const before = ranges.at(-1);
    if (before?.exchange === exchange && before.last + 1 === year) before.last = year;
    else ranges.push({ exchange, first: year, last: year });
  }
  return ranges.map(
    ({ exchange, first, last }) => `${exchange} ${first}${last === first ? '' : ` to ${last}`}`,
  );
}

/** Called before the coverage is determined, so that it includes days that the calendar wrongly lists as closed. */
export async function noteTradingDays(
  context: Context,
  window: DayRange & Pair,
  extracted: Extracted,
): Promise<void> {
  const proven = listTradingDays(window.operation, window, extracted);
  await observeTradingDays(context, window.exchange, proven).catch((error) => {
    throw databaseError(error);
  });
}
