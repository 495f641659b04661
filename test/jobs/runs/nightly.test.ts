import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../../src/calendar/calendar.ts';
import { addDays } from '../../../src/core/days.ts';
import { exchangesOf } from '../../../src/declaration/operation.ts';
import { nightlyTarget } from '../../../src/jobs/runs/nightly-request.ts';
import { operationNamed, operations } from '../../../src/operations/registry.ts';
import { forAll } from '../../support/for-all.ts';

const calendar = loadCalendar();
/** A Wednesday; the trading days before it are 9, 8, 5, 4, 3, 2, 1 September and 29 August. */
const TONIGHT = '2025-09-10';

function target(
  watermark: string | null,
  name = 'GetBhavCopyCM',
  lookback = 3,
  history = 30,
  awaited: string | null = null,
) {
  return nightlyTarget({
    operation: operationNamed(name),
    exchange: 'BSE',
    watermark,
    awaited,
    date: TONIGHT,
    calendar,
    config: { EOD_LOOKBACK_SESSIONS: lookback, EOD_HISTORY_DAYS: history },
  });
}

describe('the range of a night', () => {
  test('begins the lookback before the last loaded trading day, all of it requested again', () => {
    expect(target('2025-09-09')).toEqual({
      operation: 'GetBhavCopyCM',
      exchange: 'BSE',
      from: '2025-09-04',
      to: TONIGHT,
      refetchFrom: '2025-09-04',
    });
    expect(target('2025-09-09', 'GetBhavCopyCM', 0).from).toBe('2025-09-09');
  });

  test('heals a week of downtime', () => {
    // Loaded until Tuesday the 2nd, down until the 10th: every trading day since is inside.
    const { from, to } = target('2025-09-02');
    expect(calendar.tradingDays('BSE', from, to)).toEqual(
      expect.arrayContaining(calendar.tradingDays('BSE', '2025-09-03', TONIGHT)),
    );
    expect(from).toBe('2025-08-28');
  });

  test('never reaches back further than the source keeps', () => {
    expect(target('2024-01-01').from).toBe('2025-08-11');
    expect(target('2024-01-01', 'GetBhavCopyCM', 3, 5).from).toBe('2025-09-05');
  });

  test('of an operation that was never loaded is tonight and the lookback', () => {
    expect(target(null).from).toBe('2025-09-05');
    expect(target(null, 'GetFinRatioEOD').from).toBe(TONIGHT);
  });

  test('requests nothing again where the operation has no lookback', () => {
    expect(target('2025-09-08', 'GetFinRatioEOD')).toMatchObject({ from: '2025-09-08', refetchFrom: null });
  });

  test('begins with the first trading day whose data is awaited', () => {
    const pledge = (awaited: string) => target('2025-09-08', 'GetConsolidatedPledge', 3, 30, awaited);
    expect(pledge('2025-09-01')).toMatchObject({ from: '2025-09-01', refetchFrom: null });
    expect(pledge('2025-09-09').from).toBe('2025-09-08');
    // What is loaded already is requested again for corrections only as far as the lookback.
    expect(target('2025-09-09', 'GetSeriesChange', 3, 30, '2025-08-29')).toMatchObject({
      from: '2025-08-29',
      refetchFrom: '2025-09-04',
    });
  });

  test('of an older night, repeated, does not begin after it', () => {
    expect(target('2025-11-20')).toEqual(target(TONIGHT));
  });

  test('of an operation without dates is the night itself', () => {
    expect(target('2025-01-01', 'GetCorporateActionsCategories')).toMatchObject({
      from: TONIGHT,
      refetchFrom: null,
    });
  });

  test('leaves no trading day between the watermark and tonight out, whatever both are', () =>
    forAll(
      [
        fc.constantFrom(...operations.filter((operation) => operation.windows.per !== 'once')),
        fc.integer({ min: 0, max: 25 }),
        fc.integer({ min: 0, max: 3 }),
      ],
      (operation, daysDown, lookback) => {
        const watermark = addDays(TONIGHT, -daysDown);
        const { from, to } = target(watermark, operation.name, lookback);
        const planned = calendar.tradingDays('BSE', from, to);
        expect(planned).toEqual(expect.arrayContaining(calendar.tradingDays('BSE', watermark, TONIGHT)));
      },
    ));
});

test("the exchanges of a night are the operation's own, as far as the settings allow", () => {
  const of = (name: string, allowed: ('BSE' | 'NSE')[]) =>
    exchangesOf(operationNamed(name), { EOD_EXCHANGES: allowed });
  expect(of('GetBhavCopyCM', ['BSE', 'NSE'])).toEqual(['BSE', 'NSE']);
  expect(of('GetBhavCopyCM', ['NSE'])).toEqual(['NSE']);
  expect(of('GetCircuitBreakers', ['BSE', 'NSE'])).toEqual(['NSE']);
  expect(of('GetCircuitBreakers', ['BSE'])).toEqual([]);
});
