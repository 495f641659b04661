import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  buildCalendar,
  type Calendar,
  type Entry,
  learningCalendar,
  loadCalendar,
} from '../../src/calendar/calendar.ts';
import { addDays, daysBetween, eachDay, isWeekend } from '../../src/core/days.ts';
import { forAll } from '../support/for-all.ts';

const directory = mkdtempSync(join(tmpdir(), 'eod-calendar-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** Loaded before the tests and not with this file, so that a fault in loading fails them. */
let calendar: Calendar;
beforeAll(() => {
  calendar = loadCalendar();
});

/** A calendar with these lines of the user on top. */
function withLines(...lines: string[]) {
  const file = join(directory, 'mine.csv');
  writeFileSync(file, ['exchange,date,kind,note', ...lines, ''].join('\n'));
  return loadCalendar({ file });
}

describe('the reviewed calendar', () => {
  it.each([
    ['2026-11-20', 'session'],
    ['2026-11-21', 'weekend'],
    ['2026-11-24', 'holiday'],
    ['2015-02-28', 'special'],
    ['2016-10-30', 'special'],
    ['2021-11-04', 'special'],
    ['2022-10-24', 'special'],
    ['2024-11-01', 'special'],
    ['2025-10-21', 'special'],
    ['2024-01-20', 'special'],
    ['2024-01-22', 'holiday'],
    ['2024-03-02', 'special'],
    ['2024-05-18', 'special'],
    ['2024-05-20', 'holiday'],
    ['2024-11-20', 'holiday'],
    ['2026-02-01', 'special'],
    ['2026-11-08', 'special'],
  ])('has %s as a %s, on both exchanges', (day, kind) => {
    expect(calendar.kindOf('NSE', day)).toBe(kind);
    expect(calendar.kindOf('BSE', day)).toBe(kind);
    expect(calendar.isTradingDay('NSE', day)).toBe(kind === 'session' || kind === 'special');
  });

  it('has 240 to 252 trading days and 12 to 17 weekday holidays in every year', () => {
    for (let year = 2015; year <= 2026; year++) {
      const days = eachDay(`${year}-01-01`, `${year}-12-31`);
      const holidays = days.filter((day) => calendar.kindOf('NSE', day) === 'holiday');
      const tradingDays = calendar.tradingDays('NSE', `${year}-01-01`, `${year}-12-31`);
      expect([year, holidays.length >= 12 && holidays.length <= 17]).toEqual([year, true]);
      expect([year, tradingDays.length >= 240 && tradingDays.length <= 252]).toEqual([year, true]);
    }
  });

  it('is closed on the fixed national holidays of every year', () => {
    for (let year = 2015; year <= 2026; year++) {
      for (const day of ['01-26', '05-01', '08-15', '10-02', '12-25']) {
        expect([year, day, calendar.isTradingDay('BSE', `${year}-${day}`)]).toEqual([year, day, false]);
      }
    }
  });

  it('knows 2015 to 2026 and takes other years as Monday to Friday', () => {
    expect([2014, 2015, 2026, 2027].map((year) => calendar.knows('NSE', year))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(calendar.kindOf('NSE', '2027-01-26')).toBe('session');
    expect(calendar.kindOf('NSE', '2027-01-24')).toBe('weekend');
  });

  it('treats an unknown exchange like NSE', () => {
    const calendar = withLines('NSE,2027-01-26,holiday,', 'BSE,2027-01-27,holiday,');
    expect(calendar.kindOf('MSEI', '2027-01-26')).toBe('holiday');
    expect(calendar.kindOf('MSEI', '2027-01-27')).toBe('session');
    expect(calendar.knows('MSEI', 2027)).toBe(true);
  });
});

describe('tradingDays and lastTradingDays', () => {
  it('lists the trading days of a week with a muhurat Sunday and a holiday', () => {
    expect(calendar.tradingDays('NSE', '2026-11-07', '2026-11-11')).toEqual([
      '2026-11-08',
      '2026-11-09',
      '2026-11-11',
    ]);
    expect(calendar.tradingDays('NSE', '2026-11-11', '2026-11-07')).toEqual([]);
  });

  it('goes back over the end of a year, and over several', () => {
    expect(calendar.lastTradingDays('NSE', '2026-01-02', 4)).toEqual([
      '2025-12-30',
      '2025-12-31',
      '2026-01-01',
      '2026-01-02',
    ]);
    expect(calendar.lastTradingDays('BSE', '2018-01-01', 700)[0]).toBe(
      calendar.tradingDays('BSE', '2015-01-01', '2018-01-01').at(-700),
    );
  });

  it('ends before a day that is no trading day, and is empty when the count is 0', () => {
    expect(calendar.lastTradingDays('NSE', '2024-01-22', 2)).toEqual(['2024-01-19', '2024-01-20']);
    expect(calendar.lastTradingDays('NSE', '2024-01-22', 0)).toEqual([]);
  });

  it('goes back no further than the year 0001', () => {
    const first = calendar.tradingDays('NSE', '0001-01-01', '0001-12-31');
    expect([first[0], first.length]).toEqual(['0001-01-01', 261]);
    expect(calendar.lastTradingDays('NSE', '0001-12-31', 1_000)).toEqual(first);
  });

  it('hands out lists that the caller may change', () => {
    calendar.lastTradingDays('NSE', '2026-11-20', 5).length = 0;
    calendar.tradingDays('NSE', '2026-01-01', '2026-12-31').length = 0;
    expect(calendar.lastTradingDays('NSE', '2026-11-20', 1)).toEqual(['2026-11-20']);
  });

  it('agrees with isTradingDay and kindOf on every day of any range', () => {
    const anyDay = fc.integer({ min: 0, max: 7_000 }).map((days) => addDays('2012-01-01', days));
    const exchange = fc.constantFrom('NSE', 'BSE', 'OTHER');
    forAll([exchange, anyDay, fc.integer({ min: 0, max: 900 })], { numRuns: 20 }, (name, from, length) => {
      const to = addDays(from, length);
      const tradingDays = calendar.tradingDays(name, from, to);
      expect(tradingDays).toEqual(eachDay(from, to).filter((day) => calendar.isTradingDay(name, day)));
      expect(calendar.lastTradingDays(name, to, tradingDays.length)).toEqual(tradingDays);
      for (const day of eachDay(from, to)) {
        const kind = calendar.kindOf(name, day);
        expect(calendar.isTradingDay(name, day)).toBe(kind === 'session' || kind === 'special');
        if (kind === 'weekend') expect(isWeekend(day)).toBe(true);
        if (kind === 'session' || kind === 'holiday') expect(isWeekend(day)).toBe(false);
      }
    });
  });

  it('always finds as many trading days as requested, none after the day and none missing between', () => {
    const anyDay = fc.integer({ min: 0, max: 7_000 }).map((days) => addDays('2012-01-01', days));
    forAll([anyDay, fc.integer({ min: 1, max: 800 })], { numRuns: 20 }, (day, count) => {
      const last = calendar.lastTradingDays('NSE', day, count);
      expect(last).toHaveLength(count);
      expect(last).toEqual(calendar.tradingDays('NSE', last[0] as string, day));
      expect(daysBetween(last.at(-1) as string, day)).toBeLessThan(6);
    });
  });
});

describe('the calendar file of the user', () => {
  it('adds a year, opens and closes days, for one exchange or all', () => {
    const calendar = withLines(
      '*,2027-01-26,holiday,Republic Day',
      'BSE,2027-01-26,session,BSE alone is open',
      '*,2026-11-24,session,holiday moved',
      '*,2026-11-25,holiday,to this day',
      '*,2026-11-08,holiday,muhurat called off',
    );
    expect(calendar.kindOf('NSE', '2027-01-26')).toBe('holiday');
    expect(calendar.kindOf('BSE', '2027-01-26')).toBe('special');
    expect(calendar.kindOf('NSE', '2026-11-24')).toBe('special');
    expect(calendar.kindOf('NSE', '2026-11-25')).toBe('holiday');
    expect(calendar.kindOf('NSE', '2026-11-08')).toBe('weekend');
    expect(calendar.knows('NSE', 2027)).toBe(true);
    expect(calendar.kindOf('NSE', '2024-01-20')).toBe('special');
  });

  it('wins over the reviewed data, even with a * line where the data names the exchange', () => {
    const calendar = withLines('*,2024-11-01,holiday,', 'NSE,2024-11-20,session,');
    expect(calendar.isTradingDay('BSE', '2024-11-01')).toBe(false);
    expect(calendar.isTradingDay('NSE', '2024-11-20')).toBe(true);
    expect(calendar.isTradingDay('BSE', '2024-11-20')).toBe(false);
    const built = buildCalendar([
      [{ exchange: 'BSE', day: '2027-03-15', kind: 'holiday' }],
      [{ exchange: '*', day: '2027-03-15', kind: 'session' }],
    ]);
    expect(built.kindOf('BSE', '2027-03-15')).toBe('special');
  });

  it('is named, with the line, when it is wrong or missing', () => {
    const missing = join(directory, 'none.csv');
    expect(() => withLines('NSE,2027-13-01,holiday,')).toThrow(
      `calendar file ${join(directory, 'mine.csv')}, line 2: "2027-13-01" is not a date`,
    );
    expect(() => loadCalendar({ file: missing })).toThrow(
      `calendar file ${missing} cannot be read: there is no such file or folder`,
    );
  });
});

describe('what makes a year known', () => {
  it('is a listed holiday, of the exchange or of all, and not a listed trading day', () => {
    const built = buildCalendar([
      [
        { exchange: 'NSE', day: '2030-01-05', kind: 'session' },
        { exchange: 'BSE', day: '2031-01-01', kind: 'holiday' },
        { exchange: '*', day: '2032-01-01', kind: 'holiday' },
      ],
    ]);
    const known = (exchange: string) => [2030, 2031, 2032].map((year) => built.knows(exchange, year));
    expect(known('NSE')).toEqual([false, false, true]);
    expect(known('BSE')).toEqual([false, true, true]);
  });
});

describe('a calendar to which trading days are added', () => {
  const LISTS: readonly (readonly Entry[])[] = [[{ exchange: '*', day: '2030-01-01', kind: 'holiday' }]];
  const NEW_YEAR = { exchange: 'NSE', day: '2030-01-01' };
  const SATURDAY = { exchange: 'NSE', day: '2030-01-05' };

  it('opens observed days for their exchange alone; the listed days stay readable', () => {
    const learning = learningCalendar(LISTS);
    learning.learn([NEW_YEAR, SATURDAY]);
    expect([learning.kindOf('NSE', NEW_YEAR.day), learning.kindOf('BSE', NEW_YEAR.day)]).toEqual([
      'special',
      'holiday',
    ]);
    expect(learning.isTradingDay('NSE', SATURDAY.day)).toBe(true);
    expect(learning.tradingDays('NSE', '2030-01-01', '2030-01-06')).toEqual([
      '2030-01-01',
      '2030-01-02',
      '2030-01-03',
      '2030-01-04',
      '2030-01-05',
    ]);
    expect(learning.lastTradingDays('NSE', '2030-01-06', 1)).toEqual(['2030-01-05']);
    expect([learning.knows('NSE', 2030), learning.knows('NSE', 2031)]).toEqual([true, false]);
    expect(learning.listed.kindOf('NSE', NEW_YEAR.day)).toBe('holiday');
  });

  it('forgets what it was given before, and starts with nothing', () => {
    const learning = learningCalendar(LISTS);
    expect(learning.isTradingDay('NSE', NEW_YEAR.day)).toBe(false);
    learning.learn([NEW_YEAR]);
    learning.learn([SATURDAY]);
    expect(learning.isTradingDay('NSE', NEW_YEAR.day)).toBe(false);
    expect(learning.isTradingDay('NSE', SATURDAY.day)).toBe(true);
    learning.learn([SATURDAY, NEW_YEAR]);
    expect(learning.isTradingDay('NSE', NEW_YEAR.day)).toBe(true);
    learning.learn([{ ...SATURDAY, exchange: 'BSE' }]);
    expect([learning.isTradingDay('NSE', SATURDAY.day), learning.isTradingDay('BSE', SATURDAY.day)]).toEqual([
      false,
      true,
    ]);
    learning.learn([]);
    expect(learning.isTradingDay('BSE', SATURDAY.day)).toBe(false);
  });

  it('is not changed by an exchange without a calendar of its own', () => {
    const learning = learningCalendar(LISTS);
    learning.learn([{ exchange: 'MSEI', day: SATURDAY.day }]);
    expect(learning.isTradingDay('NSE', SATURDAY.day)).toBe(false);
    expect(learning.isTradingDay('MSEI', SATURDAY.day)).toBe(false);
  });
});
