/**
 * A calendar day as `YYYY-MM-DD`; days sort and compare as text. This file converts between days, epoch seconds and
 * the wall-clock times of a named zone.
 */
export type Day = string;

/** Days from the first to the last, both included. */
export interface DayRange {
  readonly from: Day;
  readonly to: Day;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** Years of five digits do not sort as text. */
const LAST_YEAR = 9999;
const DAY_PATTERN = /^(\d{4})-(\d{2})-(\d{2})$/;

function utcMs(day: Day): number {
  return Date.parse(`${day}T00:00:00Z`);
}

function fromUtcMs(ms: number): Day {
  return new Date(ms).toISOString().slice(0, 10);
}

/** A moment in milliseconds since the epoch as ISO 8601 in UTC. */
export const isoTime = (moment: number): string => new Date(moment).toISOString();

/** True if this text is a day that exists. `2025-02-30` does not. */
export function isDay(text: string): boolean {
  const parts = DAY_PATTERN.exec(text);
  return parts !== null && isRealDate(Number(parts[1]), Number(parts[2]), Number(parts[3]));
}

/** True if this date exists in the Gregorian calendar. Month and day count from 1. */
export function isRealDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false;
  return day <= daysInMonth(year, month);
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** The day that many days later; earlier for a negative number. */
export function addDays(day: Day, days: number): Day {
  return fromUtcMs(utcMs(day) + days * DAY_MS);
}

/** Whole days from `from` to `to`; 0 when they are the same day. */
export function daysBetween(from: Day, to: Day): number {
  return Math.round((utcMs(to) - utcMs(from)) / DAY_MS);
}

/** The days that two ranges have in common; null if there are none. */
export function commonDays(some: DayRange, others: DayRange): DayRange | null {
  const from = some.from > others.from ? some.from : others.from;
  const to = some.to < others.to ? some.to : others.to;
  return from <= to ? { from, to } : null;
}

/** From the first to the last of some sorted days; null if there are none. */
export function spanDays(days: readonly Day[]): DayRange | null {
  const [from, to] = [days[0], days.at(-1)];
  return from === undefined || to === undefined ? null : { from, to };
}

/** Every day from `from` to `to`, both included; empty when reversed. */
export function eachDay(from: Day, to: Day): Day[] {
  // Without dates, because every command lists the trading days of more than ten years.
  const days: Day[] = [];
  let [year = 0, month = 1, date = 1] = from.split('-').map(Number);
  for (let day = from; day <= to && year <= LAST_YEAR; day = formatDay(year, month, date)) {
    days.push(day);
    date += 1;
    if (date > daysInMonth(year, month)) [month, date] = [month + 1, 1];
    if (month > 12) [year, month] = [year + 1, 1];
  }
  return days;
}

function formatDay(year: number, month: number, date: number): Day {
  return `${String(year).padStart(4, '0')}-${month < 10 ? '0' : ''}${month}-${date < 10 ? '0' : ''}${date}`;
}

/** 0 is Sunday, 6 is Saturday. */
export function weekday(day: Day): number {
  return new Date(utcMs(day)).getUTCDay();
}

/** Saturday or Sunday, whatever the exchanges do on it. */
export function isWeekend(day: Day): boolean {
  const n = weekday(day);
  return n === 0 || n === 6;
}

/**
 * Zones with one offset in seconds from an instant (epoch seconds) on: India's clocks have not changed since 15 October
 * 1945. The first `Intl.DateTimeFormat` of a process takes as long as a tenth of a command.
 */
const FIXED_OFFSETS = new Map([
  ['UTC', { since: Number.NEGATIVE_INFINITY, offset: 0 }],
  ['Asia/Kolkata', { since: Date.UTC(1945, 9, 15) / 1000, offset: 19_800 }],
]);

const formatters = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, number>();

function formatter(zone: string): Intl.DateTimeFormat {
  let known = formatters.get(zone);
  if (known === undefined) {
    known = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
    formatters.set(zone, known);
  }
  return known;
}

/** Offset of `zone` from UTC at this instant (epoch seconds), in seconds; positive east of UTC. */
export function zoneOffsetSeconds(zone: string, epochSeconds: number): number {
  const fixed = FIXED_OFFSETS.get(zone);
  if (fixed !== undefined && fixed.since <= epochSeconds) return fixed.offset;
  // No zone changes its offset within a quarter of an hour, so one Intl call serves them all.
  const slot = Math.floor(epochSeconds / 900);
  const memo = `${zone}:${slot}`;
  const known = offsets.get(memo);
  if (known !== undefined) return known;
  const parts = formatter(zone).formatToParts(new Date(slot * 900_000));
  const read = (type: Intl.DateTimeFormatPartTypes) =>
    Number(parts.find((part) => part.type === type)?.value);
  const wall = Date.UTC(
    read('year'),
    read('month') - 1,
    read('day'),
    read('hour'),
    read('minute'),
    read('second'),
  );
  const offset = wall / 1000 - slot * 900;
  if (offsets.size > 10_000) offsets.clear();
  offsets.set(memo, offset);
  return offset;
}

/** Epoch seconds of a wall-clock time (`seconds` after midnight) on `day` in `zone`. */
export function epochOf(day: Day, seconds: number, zone: string): number {
  const wall = utcMs(day) / 1000 + seconds;
  const guess = wall - zoneOffsetSeconds(zone, wall);
  return wall - zoneOffsetSeconds(zone, guess);
}

/** Epoch seconds of 00:00:00 of `day` in `zone`. */
export function dayStart(day: Day, zone: string): number {
  return epochOf(day, 0, zone);
}

/** Epoch seconds of 23:59:59 of `day` in `zone`: the source includes both ends of a range. */
export function dayEnd(day: Day, zone: string): number {
  return dayStart(addDays(day, 1), zone) - 1;
}

/** The day in `zone` at this instant (epoch seconds). */
export function dayAt(epochSeconds: number, zone: string): Day {
  return fromUtcMs((epochSeconds + zoneOffsetSeconds(zone, epochSeconds)) * 1000);
}

/** `HH:mm:ss` in `zone` at this instant (epoch seconds). */
export function timeAt(epochSeconds: number, zone: string): string {
  return new Date((epochSeconds + zoneOffsetSeconds(zone, epochSeconds)) * 1000).toISOString().slice(11, 19);
}

/** `+05:30` for an offset in seconds. */
export function formatOffset(seconds: number): string {
  const minutes = Math.round(Math.abs(seconds) / 60);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${seconds < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

/** The months as files and responses name them. */
export const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** A year of two digits is one from 1990 on. */
export const fullYear = (year: string): string =>
  year.length === 4 ? year : `${Number(year) >= 90 ? 19 : 20}${year}`;

/** The day of a list that does not say since when it holds: before all data, so that it holds on every day. */
export const UNKNOWN_DAY = '1900-01-01';
