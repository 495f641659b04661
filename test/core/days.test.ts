import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addDays,
  dayAt,
  dayEnd,
  dayStart,
  daysBetween,
  eachDay,
  epochOf,
  formatOffset,
  isDay,
  isRealDate,
  isWeekend,
  timeAt,
  weekday,
  zoneOffsetSeconds,
} from '../../src/core/days.ts';
import { secondsOfDay } from '../../src/declaration/night-times.ts';
import { forAll } from '../support/for-all.ts';

const INDIA = 'Asia/Kolkata';
const NEW_YORK = 'America/New_York';

/** Any day from 1801 to 2199. */
const anyDay = fc
  .integer({ min: Date.UTC(1801, 0), max: Date.UTC(2199, 11, 31) })
  .map((ms) => new Date(ms).toISOString().slice(0, 10));
const anySeconds = fc.integer({ min: Date.UTC(1950, 0) / 1000, max: Date.UTC(2100, 0) / 1000 });

describe('days that exist', () => {
  test.each(['2025-02-28', '2024-02-29', '2000-02-29', '1999-12-31', '0001-01-01'])('%s is a day', (text) => {
    expect(isDay(text)).toBe(true);
  });

  test.each([
    '',
    '2025-02-29',
    '1900-02-29',
    '2025-04-31',
    '2025-00-10',
    '2025-13-10',
    '2025-01-00',
    '2025-01-32',
    '2025-1-01',
    '2025-01-1',
    '25-01-01',
    'x2025-01-01',
    '2025-01-01T00:00:00',
    '2025/01/01',
    'abcd-01-01',
    '2025-ab-01',
    '2025-01-ab',
  ])('%j is none', (text) => {
    expect(isDay(text)).toBe(false);
  });

  test('the same ones as in a Date, for every date of 400 years', () => {
    for (let year = 1800; year < 2200; year++) {
      for (let month = 1; month <= 12; month++) {
        const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
        expect(isRealDate(year, month, 0)).toBe(false);
        expect(isRealDate(year, month, 1)).toBe(true);
        expect(isRealDate(year, month, length)).toBe(true);
        expect(isRealDate(year, month, length + 1)).toBe(false);
      }
      expect([isRealDate(year, 0, 1), isRealDate(year, 13, 1)]).toEqual([false, false]);
    }
  });
});

describe('arithmetic of days', () => {
  test('over the end of months and years', () => {
    expect(addDays('2024-02-28', 1)).toBe('2024-02-29');
    expect(addDays('2025-01-01', -1)).toBe('2024-12-31');
    expect(addDays('2025-06-01', 0)).toBe('2025-06-01');
    expect(daysBetween('2024-02-28', '2024-03-01')).toBe(2);
    expect(daysBetween('2024-03-01', '2024-02-28')).toBe(-2);
    expect(eachDay('2024-12-30', '2025-01-01')).toEqual(['2024-12-30', '2024-12-31', '2025-01-01']);
    expect(eachDay('2024-12-30', '2024-12-30')).toEqual(['2024-12-30']);
    expect(eachDay('2024-12-31', '2024-12-30')).toEqual([]);
    expect(eachDay('9999-12-30', '9999-12-31')).toEqual(['9999-12-30', '9999-12-31']);
    expect(eachDay('0099-12-31', '0100-01-01')).toEqual(['0099-12-31', '0100-01-01']);
  });

  test('adding and counting are each other’s reverse', () =>
    forAll([anyDay, fc.integer({ min: -400, max: 400 })], (day, days) => {
      const other = addDays(day, days);
      expect(isDay(other)).toBe(true);
      expect(daysBetween(day, other)).toBe(days);
      const listed = Array.from({ length: Math.max(0, days + 1) }, (_, after) => addDays(day, after));
      expect(eachDay(day, other)).toEqual(listed);
      expect(weekday(other)).toBe((((weekday(day) + days) % 7) + 7) % 7);
    }));

  test('weekdays', () => {
    expect(eachDay('2026-11-15', '2026-11-21').map(weekday)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(eachDay('2026-11-15', '2026-11-21').map(isWeekend)).toEqual([
      true,
      ...Array<boolean>(5).fill(false),
      true,
    ]);
  });
});

describe('days and the clock', () => {
  test('a day in India from its first to its last second', () => {
    expect(dayStart('2025-02-27', INDIA)).toBe(1_740_594_600);
    expect(dayEnd('2025-02-27', INDIA)).toBe(1_740_680_999);
    expect([dayAt(1_740_594_599, INDIA), dayAt(1_740_594_600, INDIA)]).toEqual(['2025-02-26', '2025-02-27']);
    expect(timeAt(1_740_594_599, INDIA)).toBe('23:59:59');
    expect(epochOf('2025-02-27', 21 * 3600, INDIA)).toBe(1_740_594_600 + 21 * 3600);
  });

  test('offsets follow summer time, to the second', () => {
    const spring = Date.UTC(2025, 2, 9, 7) / 1000;
    expect([spring - 1, spring].map((at) => zoneOffsetSeconds(NEW_YORK, at))).toEqual([-18_000, -14_400]);
    expect([spring - 1, spring].map((at) => timeAt(at, NEW_YORK))).toEqual(['01:59:59', '03:00:00']);
    expect(zoneOffsetSeconds(INDIA, spring)).toBe(19_800);
    expect(zoneOffsetSeconds('UTC', spring)).toBe(0);
    expect(dayEnd('2025-03-09', NEW_YORK) - dayStart('2025-03-09', NEW_YORK)).toBe(23 * 3600 - 1);
    expect(dayEnd('2025-11-02', NEW_YORK) - dayStart('2025-11-02', NEW_YORK)).toBe(25 * 3600 - 1);
    expect(epochOf('2025-03-08', 7200, NEW_YORK)).toBe(spring - 24 * 3600);
    expect(epochOf('2025-03-09', 3 * 3600, NEW_YORK)).toBe(spring);
  });

  test.each(['UTC', INDIA])('%s has the offset that the zone database has, from 1900 to 2099', (zone) => {
    const wall = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
    for (let at = Date.UTC(1900, 0) / 1000; at < Date.UTC(2100, 0) / 1000; at += 10 * 86_400) {
      const parted = Date.parse(`${wall.format(at * 1000).replace(' ', 'T')}Z`) / 1000;
      expect(zoneOffsetSeconds(zone, at)).toBe(parted - at);
    }
  });

  test('day and time name the instant they came from', () =>
    forAll([anySeconds, fc.constantFrom(INDIA, 'UTC', 'Asia/Kathmandu')], (at, zone) => {
      const [hours = 0, minutes = 0, seconds = 0] = timeAt(at, zone).split(':').map(Number);
      expect(epochOf(dayAt(at, zone), hours * 3600 + minutes * 60 + seconds, zone)).toBe(at);
    }));

  test('more instants than are remembered, each with its own offset', () => {
    const half = Date.UTC(2025, 0) / 1000;
    for (let slot = 0; slot < 10_100; slot++)
      expect(zoneOffsetSeconds('Asia/Kathmandu', half + slot * 900)).toBe(20_700);
    expect(zoneOffsetSeconds(NEW_YORK, half)).toBe(-18_000);
  });

  test('times of day as seconds after midnight', () => {
    expect(['00:00', '00:07', '21:15', '23:59'].map(secondsOfDay)).toEqual([0, 420, 76_500, 86_340]);
  });

  test('offsets as text', () => {
    const texts = [19_800, 0, -12_600, 3_600, -18_000, 20_700].map(formatOffset);
    expect(texts).toEqual(['+05:30', '+00:00', '-03:30', '+01:00', '-05:00', '+05:45']);
  });
});
