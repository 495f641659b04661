import { dayAt, epochOf, formatOffset, isRealDate, MONTHS, timeAt, zoneOffsetSeconds } from '../core/days.ts';
import type { Scalar } from './table.ts';
import { InvalidValue, invalid, type ValueReader } from './value-readers.ts';

/** A date-time as a text states it: local time, and the offset from UTC if there is one. */
interface Moment {
  readonly day: string;
  /** Seconds after midnight. */
  readonly seconds: number;
  /** `.123`, or empty. */
  readonly fraction: string;
  /** Minutes ahead of UTC; null if the text has no offset. */
  readonly offset: number | null;
}

const TIME = String.raw`(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?(?: *([AP]M))?(?: *(Z|[+-]\d{2}:?\d{2}))?)?`;
/** `MM-DD-YYYY` and `M-D-YYYY`: the month comes first. */
const AMERICAN = new RegExp(`^(\\d{1,2})-(\\d{1,2})-(\\d{4})${TIME}$`, 'i');
const ISO = new RegExp(`^(\\d{4})-(\\d{2})-(\\d{2})${TIME}$`, 'i');
/** `20-AUG-2021`, as in the exchanges' own files. */
const NAMED = new RegExp(`^(\\d{1,2})-([A-Z]{3})-(\\d{4})${TIME}$`, 'i');
/** Unix seconds or milliseconds; the source's CSV prints integers with `.0`. */
const EPOCH = /^-?\d{1,15}(?:\.0+)?$/;

/** For a missing date, the source sends a moment in the year 1. */
const NO_DATE_YEAR = 1;
const FIRST_YEAR = 1800;
const LAST_YEAR = 2199;
/** Epoch seconds of the year 1, with a day more at each end because of time zones. */
const YEAR_ONE = { from: -62_135_596_800 - 86_400, to: -62_104_060_800 + 86_400 };
const EPOCH_RANGE = { from: Date.UTC(FIRST_YEAR) / 1000, to: Date.UTC(LAST_YEAR + 1) / 1000 - 1 };

/**
 * A number with fewer than nine digits would be a moment around 1970. It is more likely not a time at all (`20250227`,
 * a code), so it is invalid. The times of the source have ten digits, or thirteen in milliseconds. 0 is no time.
 */
const SMALLEST_EPOCH = 100_000_000;

/** A number of this size is in milliseconds: as seconds it would be after the year 5000. */
const SMALLEST_IN_MS = 100_000_000_000;

/** A moment; null for "no date"; or what the text should have been. */
function parseMoment(text: string): Moment | null | string {
  const american = AMERICAN.exec(text);
  if (american !== null)
    return readMoment(american, Number(american[3]), Number(american[1]), Number(american[2]));
  const iso = ISO.exec(text);
  if (iso !== null) return readMoment(iso, Number(iso[1]), Number(iso[2]), Number(iso[3]));
  const match = NAMED.exec(text);
  if (match !== null) {
    const [, date, month = '', year] = match;
    return readMoment(match, Number(year), MONTHS.indexOf(month.toLowerCase()) + 1, Number(date));
  }
  return 'a date';
}

function readMoment(
  match: RegExpExecArray,
  year: number,
  month: number,
  date: number,
): Moment | null | string {
  if (year === NO_DATE_YEAR) return null;
  if (!isRealDate(year, month, date)) return 'a date that exists';
  if (year < FIRST_YEAR || year > LAST_YEAR) return `a date between ${FIRST_YEAR} and ${LAST_YEAR}`;
  const seconds = parseTime(match[4], match[5], match[6], match[8]);
  if (seconds === null) return 'a time that exists';
  const offset = match[9] === undefined ? null : parseOffset(match[9]);
  if (offset !== null && Math.abs(offset) > 14 * 60) return 'a time with a zone that exists';
  const two = (n: number) => String(n).padStart(2, '0');
  return { day: `${year}-${two(month)}-${two(date)}`, seconds, fraction: match[7] ?? '', offset };
}

function parseTime(hour = '0', minute = '0', second = '0', half?: string): number | null {
  let hours = Number(hour);
  if (half !== undefined) {
    if (hours < 1 || hours > 12) return null;
    hours = (hours % 12) + (half.toUpperCase() === 'PM' ? 12 : 0);
  }
  if (hours > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  return hours * 3600 + Number(minute) * 60 + Number(second);
}

function parseOffset(zone: string): number {
  if (zone.toUpperCase() === 'Z') return 0;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2));
  return zone.startsWith('-') ? -minutes : minutes;
}

/** Epoch seconds, with decimals if it had milliseconds; null for "no date"; or what the number should have been. */
function parseEpoch(stated: number): number | null | string {
  if (stated === 0) return null;
  if (!Number.isInteger(stated)) return 'a date in whole Unix seconds';
  const seconds = Math.abs(stated) < SMALLEST_IN_MS ? stated : stated / 1000;
  if (seconds >= YEAR_ONE.from && seconds <= YEAR_ONE.to) return null;
  if (seconds < EPOCH_RANGE.from || seconds > EPOCH_RANGE.to) {
    return `a date between ${FIRST_YEAR} and ${LAST_YEAR} in Unix seconds`;
  }
  if (Math.abs(seconds) < SMALLEST_EPOCH) return 'a date: too small a number for Unix seconds';
  return seconds;
}

type FromMoment = (moment: Moment) => string;
type FromEpoch = (seconds: number) => string;

/** How many texts a reader remembers, because a response repeats the same few days and times. */
const REMEMBERED = 10_000;

function createReader(fromMoment: FromMoment, fromEpoch: FromEpoch): ValueReader {
  const known = new Map<string, Scalar>();
  const byEpoch = (sent: unknown, seconds: number): Scalar | InvalidValue => {
    const parsed = parseEpoch(seconds);
    if (typeof parsed === 'string') return invalid(sent, parsed);
    return parsed === null ? null : fromEpoch(parsed);
  };
  const byText = (sent: string): Scalar | InvalidValue => {
    const text = sent.trim();
    if (text === '') return null;
    if (EPOCH.test(text)) return byEpoch(sent, Number(text));
    const parsed = parseMoment(text);
    if (typeof parsed === 'string') return invalid(sent, parsed);
    return parsed === null ? null : fromMoment(parsed);
  };
  return (value) => {
    if (typeof value === 'string') {
      const remembered = known.get(value);
      if (remembered !== undefined) return remembered;
      const read = byText(value);
      if (read instanceof InvalidValue) return read;
      if (known.size >= REMEMBERED) known.clear();
      // Very long texts are not remembered, because they would take up memory.
      if (value.length <= 64) known.set(value, read);
      return read;
    }
    if (value === null || value === undefined) return null;
    return typeof value === 'number' ? byEpoch(value, value) : invalid(value, 'a date');
  };
}

/** Reads days as `YYYY-MM-DD`; for Unix seconds and texts with an offset, the day that it was in `zone` then. */
export function createDateReader(zone: string): ValueReader {
  return createReader(
    ({ day, seconds, offset }) =>
      offset === null ? day : dayAt(Date.parse(`${day}T00:00:00Z`) / 1000 + seconds - offset * 60, zone),
    (seconds) => dayAt(Math.floor(seconds), zone),
  );
}

/** Reads date-times as `YYYY-MM-DD HH:mm:ss+05:30`; without an offset they are taken to be in `zone`. */
export function createDatetimeReader(zone: string): ValueReader {
  return createReader(
    ({ day, seconds, fraction, offset }) => {
      const time = new Date(seconds * 1000).toISOString().slice(11, 19);
      const ahead = offset === null ? offsetAt(epochOf(day, seconds, zone), zone) : formatOffset(offset * 60);
      return `${day} ${time}${fraction}${ahead}`;
    },
    (stated) => {
      const seconds = Math.floor(stated);
      const ms = Math.round((stated - seconds) * 1000);
      const fraction = ms === 0 ? '' : `.${String(ms).padStart(3, '0')}`;
      return `${dayAt(seconds, zone)} ${timeAt(seconds, zone)}${fraction}${offsetAt(seconds, zone)}`;
    },
  );
}

function offsetAt(epochSeconds: number, zone: string): string {
  return formatOffset(zoneOffsetSeconds(zone, epochSeconds));
}
