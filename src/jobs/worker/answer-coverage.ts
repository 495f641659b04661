import type { Calendar } from '../../calendar/calendar.ts';
import { type Clock, today } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day, daysBetween, timeAt } from '../../core/days.ts';
import type { Extracted } from '../../extract/types.ts';
import type { CoverageEntry, CoverageState } from '../../load/state/coverage.ts';
import { type Operation, publicationTime, QUARTER_AWAITED_DAYS } from '../../operations/operation.ts';
import { countValues } from '../../operations/rows.ts';

/** The window facts that decide which days it speaks for. */
export interface CoveredWindow {
  readonly from: Day;
  readonly to: Day;
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly filtered: boolean;
}

/** The day-and-instrument questions a window answers, before it is known how (pure). */
export function questionsOf(
  operation: Operation,
  window: CoveredWindow,
  sessions: readonly Day[],
  calledOn: Day,
): Pick<CoverageEntry, 'day' | 'instrument' | 'variant'>[] {
  if (window.filtered) return [];
  const instruments = window.instruments.length === 0 ? [''] : window.instruments;
  const days = daysOf(operation, window, sessions, calledOn);
  return days.flatMap((day) =>
    instruments.map((instrument) => ({ day, instrument, variant: window.variant })),
  );
}

/** Does the answer depend on the days that are asked for? Else it speaks for the day of the call. */
export function dependsOnDays(operation: Operation, { variant }: Pick<CoveredWindow, 'variant'>): boolean {
  return operation.request.dates !== 'none' && !variant.startsWith('realtime/');
}

function daysOf(
  operation: Operation,
  window: CoveredWindow,
  sessions: readonly Day[],
  calledOn: Day,
): readonly Day[] {
  if (!dependsOnDays(operation, window)) return [calledOn];
  return operation.windows.per === 'instrument' ? [window.to] : sessions;
}

/** When an answer was given, and what tells how long data is awaited. */
interface AnswerTime {
  readonly clock: Clock;
  readonly calendar: Pick<Calendar, 'lastSessions'>;
  readonly config: Pick<Config, 'EOD_TIMEZONE' | 'EOD_PUBLISHED_AT' | 'EOD_LOOKBACK_SESSIONS'>;
}

/**
 * What an answer says about each session it was asked about: day by day where its records carry
 * their day, as a whole where they do not.
 */
export function coverageOf(
  operation: Operation,
  window: CoveredWindow & { readonly exchange: string },
  sessions: readonly Day[],
  extracted: Extracted,
  when: AnswerTime,
): CoverageEntry[] {
  const calledOn = today(when.clock, when.config.EOD_TIMEZONE);
  const tally = tallyOf(operation, window, extracted);
  const emptyState = emptyStateOf(operation, window, calledOn, when);
  return questionsOf(operation, window, sessions, calledOn).map((question) => {
    const { day, instrument } = question;
    const records = tally(day, instrument);
    if (records > 0) return { ...question, state: 'loaded', records };
    if (mayBeRejected(extracted, day, instrument)) {
      return { ...question, state: 'failed', records, diagnostic: 'no record of it passed; see its rejects' };
    }
    return { ...question, state: emptyState(day), records };
  });
}

/** Can a rejected record be of this day and instrument? Then nothing listed does not mean that there is nothing. */
function mayBeRejected({ rejects, fetched }: Extracted, day: Day, instrument: string): boolean {
  if (rejects.length > 0 && rejects.length === fetched) return true;
  return rejects.some(
    (reject) =>
      (reject.day ?? day) === day &&
      (instrument === '' || (reject.instrument ?? instrument).toUpperCase() === instrument.toUpperCase()),
  );
}

/**
 * What it means that an answer lists nothing of a day: that there is nothing, or that it may come yet. Data may be
 * late: nothing is believed only once as many further sessions as nights look back have been published, and of a quarter
 * once the next one is over.
 */
function emptyStateOf(
  operation: Operation,
  { exchange, from, to }: CoveredWindow & { readonly exchange: string },
  calledOn: Day,
  { clock, calendar, config }: AnswerTime,
): (day: Day) => CoverageState {
  if (operation.windows.per === 'instrument' && from !== to) {
    const awaited = daysBetween(to, calledOn) <= QUARTER_AWAITED_DAYS;
    return () => (awaited ? 'not_published' : 'empty');
  }
  const { EOD_TIMEZONE, EOD_LOOKBACK_SESSIONS: nights } = config;
  const time = timeAt(Math.floor(clock.now() / 1000), EOD_TIMEZONE).slice(0, 5);
  const isOut = time >= publicationTime(operation, config.EOD_PUBLISHED_AT);
  const lastOut = isOut ? calledOn : addDays(calledOn, -1);
  const believedBefore =
    nights === 0 ? addDays(lastOut, 1) : (calendar.lastSessions(exchange, lastOut, nights)[0] ?? lastOut);
  return (day) => (day < believedBefore ? 'empty' : 'not_published');
}

/** Counts the records of each day and, where a window asks for instruments, of each of those ('' are all of a day). */
function tallyOf(
  operation: Operation,
  { instruments }: CoveredWindow,
  extracted: Extracted,
): (day: Day, instrument: string) => number {
  const asked = new Set(instruments.map((instrument) => instrument.toUpperCase()));
  const days = new Map<Day, number>();
  const counts = new Map<string, number>();
  let undated = 0;
  for (const { table, rows } of extracted.batches) {
    const shape = operation.shapes.find((candidate) => candidate.table === table);
    // What the lines of a file tell besides, in a table of its own, is no further record of the data set.
    if (shape === undefined) continue;
    const dayColumn = shape.dated ? table.dateColumn : null;
    if (dayColumn === null) {
      undated += rows.length;
      continue;
    }
    for (const [value, records] of countValues(rows, dayColumn)) {
      days.set(String(value), (days.get(String(value)) ?? 0) + records);
    }
    if (asked.size === 0 || shape.symbolColumn === undefined) continue;
    for (const row of rows) {
      const day = String(row[dayColumn]);
      const symbol = String(row[shape.symbolColumn]).toUpperCase();
      if (!asked.has(symbol)) continue;
      const name = `${day}|${symbol}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return (day, instrument) =>
    undated + ((instrument === '' ? days.get(day) : counts.get(`${day}|${instrument.toUpperCase()}`)) ?? 0);
}
