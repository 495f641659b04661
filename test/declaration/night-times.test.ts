import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { loadConfig } from '../../src/core/config.ts';
import { addDays, type Day, epochOf } from '../../src/core/days.ts';
import { dueMinutes, lastNight, secondsOfDay } from '../../src/declaration/night-times.ts';
import { exchangesOf } from '../../src/declaration/operation.ts';
import { nightOfTick, plannedSchedules } from '../../src/jobs/runs/night-schedules.ts';
import { nightlyTarget } from '../../src/jobs/runs/nightly-request.ts';
import { planWindows } from '../../src/jobs/runs/plan-windows.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';

const calendar = loadCalendar();
const ZONE = 'Asia/Kolkata';
const clockAt = (seconds: number) => ({ now: () => seconds * 1000 });

/** Days of two years, with weekends, holidays and special trading days: Saturdays, and the evening of Diwali. */
const day = fc.integer({ min: 0, max: 730 }).map((days) => addDays('2024-01-01', days));
const special = fc.constantFrom(
  ...['2024-01-20', '2024-03-02', '2024-11-01', '2025-02-01', '2025-10-21'],
  ...['2024-01-22', '2024-11-15', '2025-08-15', '2025-10-02', '2025-10-22'],
);
const moment = fc
  .tuple(fc.oneof(day, special), fc.integer({ min: 0, max: 86_399 }))
  .map(([on, seconds]) => epochOf(on, seconds, ZONE));
const time = fc
  .integer({ min: 0, max: 1_439 })
  .map((n) => `${String(Math.floor(n / 60)).padStart(2, '0')}:${String(n % 60).padStart(2, '0')}`);

/** The trading days of an exchange around a moment whose time of publication has come. */
const published = (exchange: string, at: number, publishedAt: string): Day[] =>
  calendar
    .tradingDays(exchange, '2023-11-01', '2026-02-28')
    .filter((tradingDay) => epochOf(tradingDay, secondsOfDay(publishedAt), ZONE) <= at);

describe('the last night', () => {
  test('requests the last trading day whose data is due, and none that is not, at any time of any day', () => {
    forAll([moment, fc.constantFrom(...operations)], (at, operation) => {
      const config = loadConfig({});
      const date = lastNight(config, clockAt(at));
      for (const exchange of exchangesOf(operation, config)) {
        const due = published(exchange, at, config.EOD_PUBLISHED_AT);
        for (const watermark of [null, due.at(-1) ?? null, due.at(-4) ?? null]) {
          const state = { watermark, awaited: null, date, calendar, config };
          const target = nightlyTarget({ operation, exchange, ...state });
          const tradingDays = calendar.tradingDays(exchange, target.from, target.to);
          expect(tradingDays.filter((tradingDay) => !due.includes(tradingDay))).toEqual([]);
          if (operation.windows.per !== 'once') expect(tradingDays.at(-1)).toBe(due.at(-1));
        }
      }
    });
  });

  test('before the evening requests the ratios of the last trading day, and none of a day to come', () => {
    const operation = operationNamed('GetFinRatioEOD');
    const config = loadConfig({});
    // A Tuesday at 02:00, after the trading day of Monday.
    const date = lastNight(config, clockAt(epochOf('2025-09-09', 7_200, ZONE)));
    const state = { watermark: null, awaited: null, date, calendar, config };
    const target = nightlyTarget({ operation, exchange: 'BSE', ...state });
    const windows = planWindows({
      ...target,
      operation,
      tradingDays: calendar.tradingDays('BSE', target.from, target.to),
      instruments: ['TCS'],
      options: {},
      covered: new Map(),
      today: '2025-09-09',
      live: true,
      windowDays: undefined,
    });
    expect([...windows].map(({ from, to, state }) => [from, to, state])).toEqual([
      ['2025-09-08', '2025-09-08', 'pending'],
      ['2025-09-08', '2025-09-08', 'pending'],
    ]);
  });

  test('is today from EOD_PUBLISHED_AT on, or from the first of the times that are set', () => {
    const at = (clock: string, settings: Record<string, string> = {}) =>
      lastNight(loadConfig(settings), clockAt(epochOf('2025-09-10', secondsOfDay(clock), ZONE)));
    expect([at('00:00'), at('09:30'), at('21:14')]).toEqual(['2025-09-09', '2025-09-09', '2025-09-09']);
    expect([at('21:15'), at('23:59')]).toEqual(['2025-09-10', '2025-09-10']);
    expect(at('19:00', { EOD_NIGHT_TIMES: '23:00,19:00' })).toBe('2025-09-10');
    expect(at('18:59', { EOD_NIGHT_TIMES: '23:00,19:00' })).toBe('2025-09-09');
    expect(at('21:15', { EOD_NIGHT_TIMES: '06:00' })).toBe('2025-09-10');
    expect(at('06:00', { EOD_NIGHT_TIMES: '06:00' })).toBe('2025-09-09');
  });
});

describe('the times of schedules', () => {
  const patternsOf = (id: string, times?: string) =>
    plannedSchedules(loadConfig(times === undefined ? {} : { EOD_NIGHT_TIMES: times }))
      .filter((schedule) => `${schedule.operation}-${schedule.exchange}` === id)
      .map((schedule) => [schedule.id, schedule.pattern]);

  test('are moved by EOD_NIGHT_TIMES, in the declared order, and repeated for each of them', () => {
    expect(patternsOf('GetBhavCopyCM-NSE')).toEqual([['GetBhavCopyCM-NSE', '17 21 * * *']]);
    expect(patternsOf('GetBhavCopyCM-NSE', '19:00,23:00')).toEqual([
      ['GetBhavCopyCM-NSE', '2 19 * * *'],
      ['GetBhavCopyCM-NSE-2', '2 23 * * *'],
    ]);
    // Declared for Saturday at 23:00, which is 1 h 45 min after the first.
    expect(patternsOf('GetFinRatioSnapshot-BSE', '19:00,23:00')).toEqual([
      ['GetFinRatioSnapshot-BSE', '45 20 * * 6'],
      ['GetFinRatioSnapshot-BSE-2', '45 0 * * 0'],
    ]);
  });

  test('whatever they are, each night has one tick for each of them, on the weekdays that are declared', () => {
    const days = Array.from({ length: 14 }, (_, at) => addDays('2025-09-01', at));
    forAll(
      [fc.constantFrom(...operations), fc.uniqueArray(time, { minLength: 1, maxLength: 3 })],
      { numRuns: 40, seed: 22 },
      (operation, times) => {
        const config = loadConfig({ EOD_OPERATIONS: operation.name, EOD_NIGHT_TIMES: times.join(',') });
        const exchange = exchangesOf(operation, config).at(-1) ?? '';
        const nights = plannedSchedules(config)
          .filter((schedule) => schedule.operation === operation.name && schedule.exchange === exchange)
          .flatMap(({ pattern }) => {
            const currentDate = new Date(epochOf('2025-09-01', 0, ZONE) * 1000);
            const ticks = CronExpressionParser.parse(pattern, { tz: ZONE, currentDate });
            return days.map(() => Math.floor(ticks.next().getTime() / 1000));
          })
          .map((seconds) => nightOfTick({ operation: operation.name, exchange }, 1000 * seconds, config));
        const wanted = { daily: null, sunday: 0, friday: 5, saturday: 6 }[operation.schedule.on];
        for (const night of days.slice(2, 12)) {
          const isRequested = wanted === null || new Date(night).getUTCDay() === wanted;
          expect(nights.filter((other) => other === night)).toHaveLength(isRequested ? times.length : 0);
        }
      },
    );
  });

  test('data is due when it is requested for the first time after it is published', () => {
    const due = (name: string, settings: Record<string, string>) =>
      dueMinutes(operationNamed(name), loadConfig(settings)) / 60;
    expect(due('GetBhavCopyCM', {})).toBe(21.25);
    expect(due('GetBhavCopyCM', { EOD_NIGHT_TIMES: '19:00,23:00' })).toBe(23);
    expect(due('GetBhavCopyCM', { EOD_NIGHT_TIMES: '19:00,21:30,23:00' })).toBe(21.5);
    expect(due('GetBhavCopyCM', { EOD_NIGHT_TIMES: '19:00' })).toBe(21.25);
    expect(due('GetFinRatioSnapshot', { EOD_NIGHT_TIMES: '23:00' })).toBe(24.75);
  });
});
