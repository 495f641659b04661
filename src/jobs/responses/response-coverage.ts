import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day, type DayRange, dayAt, daysBetween, timeAt } from '../../core/days.ts';
import { type DataSet, isPart, publicationTime, QUARTER_AWAITED_DAYS } from '../../declaration/operation.ts';
import { countValues } from '../../declaration/rows.ts';
import type { Extracted } from '../../extract/types.ts';
import type { CoverageEntry, CoverageState } from '../../state/registers.ts';

/** The fields of a window that decide which entries it is about. */
export interface CoveredWindow extends DayRange {
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly filtered: boolean;
}

/** The entries of coverage that a window is about: a day, an instrument and a variant each (pure). */
export function listEntries(
  dataSet: DataSet,
  window: CoveredWindow,
  tradingDays: readonly Day[],
  calledOn: Day,
): Pick<CoverageEntry, 'day' | 'instrument' | 'variant'>[] {
  if (window.filtered || (dataSet.windows.per === 'file' && dataSet.windows.days === 'none')) return [];
  const instruments = window.instruments.length === 0 ? [''] : window.instruments;
  const days = listCoveredDays(dataSet, window, tradingDays, calledOn);
  return days.flatMap((day) =>
    instruments.map((instrument) => ({ day, instrument, variant: window.variant })),
  );
}

/** True if the response is about the requested days. If not, it is about the day of the call. */
export function dependsOnDays(dataSet: DataSet, { variant }: Pick<CoveredWindow, 'variant'>): boolean {
  return dataSet.request.dates !== 'none' && !variant.startsWith('realtime/') && !isPart(dataSet, variant);
}

function listCoveredDays(
  dataSet: DataSet,
  window: CoveredWindow,
  tradingDays: readonly Day[],
  calledOn: Day,
): readonly Day[] {
  if (!dependsOnDays(dataSet, window)) return [calledOn];
  return dataSet.windows.per === 'instrument' ? [window.to] : tradingDays;
}

/** The time of a response, and what decides how long data may still be published. */
interface ResponseTime {
  /** Time of the call in epoch milliseconds. */
  readonly calledAt: number;
  /** The trading day of the call. */
  readonly calledOn: Day;
  readonly calendar: Pick<Calendar, 'lastTradingDays'>;
  readonly config: Pick<Config, 'EOD_TIMEZONE' | 'EOD_PUBLISHED_AT' | 'EOD_LOOKBACK_SESSIONS'>;
}

/**
 * What a response means for the coverage of each trading day it is about: day by day if its records have a day, as a
 * whole if they do not.
 */
export function computeCoverage(
  dataSet: DataSet,
  window: CoveredWindow & { readonly exchange: string },
  tradingDays: readonly Day[],
  extracted: Extracted,
  when: ResponseTime,
): CoverageEntry[] {
  const tally = tallyRecords(dataSet, window, extracted);
  const emptyState = decideEmptyState(dataSet, window, when);
  return listEntries(dataSet, window, tradingDays, when.calledOn).map((entry) => {
    const { day, instrument } = entry;
    const records = tally(day, instrument);
    if (records > 0) return { ...entry, state: 'loaded', records };
    if (mayBeRejected(extracted, day, instrument)) {
      return {
        ...entry,
        state: 'failed',
        records,
        diagnostic: 'none of its records was stored; see its rejects',
      };
    }
    return { ...entry, state: emptyState(day), records };
  });
}

/** True if a rejected record may be of this day and instrument. Then it is not known that there is no data. */
function mayBeRejected({ rejects, fetched }: Extracted, day: Day, instrument: string): boolean {
  if (rejects.length > 0 && rejects.length === fetched) return true;
  return rejects.some(
    (reject) =>
      (reject.day ?? day) === day &&
      (instrument === '' || (reject.instrument ?? instrument).toUpperCase() === instrument.toUpperCase()),
  );
}

/**
 * What it means if a response has no records of a day: that there are none, or that they may still be published. Data
 * may be late: there are none only once EOD_LOOKBACK_SESSIONS further trading days have been published, or, for a
 * quarter, once the next quarter is over.
 */
function decideEmptyState(
  dataSet: DataSet,
  { exchange, from, to, variant }: CoveredWindow & { readonly exchange: string },
  { calledAt, calendar, config }: ResponseTime,
): (day: Day) => CoverageState {
  // What it lists depends on no day: nothing is still to come.
  if (isPart(dataSet, variant)) return () => 'empty';
  const { EOD_TIMEZONE: zone, EOD_LOOKBACK_SESSIONS: lookback } = config;
  const day = dayAt(Math.floor(calledAt / 1000), zone);
  if (dataSet.windows.per === 'instrument' && from !== to) {
    const awaited = daysBetween(to, day) <= QUARTER_AWAITED_DAYS;
    return () => (awaited ? 'not_published' : 'empty');
  }
  const time = timeAt(Math.floor(calledAt / 1000), zone).slice(0, 5);
  const isPublished = time >= publicationTime(dataSet, config.EOD_PUBLISHED_AT);
  const lastPublished = isPublished ? day : addDays(day, -1);
  const emptyBefore =
    lookback === 0
      ? addDays(lastPublished, 1)
      : (calendar.lastTradingDays(exchange, lastPublished, lookback)[0] ?? lastPublished);
  return (day) => (day < emptyBefore ? 'empty' : 'not_published');
}

/** The day of records that have none. */
const ANY_DAY = '';

/** Counts the records of each day and, if a window requests instruments, of each of these ('' counts all of a day). */
function tallyRecords(
  dataSet: DataSet,
  { instruments }: CoveredWindow,
  extracted: Extracted,
): (day: Day, instrument: string) => number {
  const requested = new Set(instruments.map((instrument) => instrument.toUpperCase()));
  const days = new Map<Day, number>();
  const counts = new Map<string, number>();
  let undated = 0;
  for (const { table, rows } of extracted.batches) {
    const shape = dataSet.shapes.find((candidate) => candidate.table === table);
    // Rows of a table in `alsoInFiles` come from the same lines of the file and are not counted twice.
    if (shape === undefined) continue;
    const dayColumn = shape.dated ? table.dateColumn : null;
    // Without a symbol in its records, what was requested is all that is known of a single instrument.
    const bySymbol = shape.symbolColumn !== undefined && requested.size > (dayColumn === null ? 1 : 0);
    if (dayColumn === null) {
      if (!bySymbol) undated += rows.length;
    } else {
      for (const [value, records] of countValues(rows, dayColumn)) {
        days.set(String(value), (days.get(String(value)) ?? 0) + records);
      }
    }
    if (!bySymbol || shape.symbolColumn === undefined) continue;
    for (const row of rows) {
      const day = dayColumn === null ? ANY_DAY : String(row[dayColumn]);
      const symbol = String(row[shape.symbolColumn]).toUpperCase();
      if (!requested.has(symbol)) continue;
      const name = `${day}|${symbol}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return (day, instrument) => {
    if (instrument === '') return undated + (days.get(day) ?? 0);
    const symbol = instrument.toUpperCase();
    return undated + (counts.get(`${day}|${symbol}`) ?? 0) + (counts.get(`${ANY_DAY}|${symbol}`) ?? 0);
  };
}
