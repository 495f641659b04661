import { between } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { listTradingDays, syncTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import { type Gap, gapRequest, groupGaps, readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import type { TradingDayState } from '../../../src/state/coverage/completeness.ts';
import { gapText } from '../../../src/state/coverage/gap-reasons.ts';
import { sessions } from '../../../src/state/schema/knowledge.ts';
import { writeTradingDays } from '../../../src/state/sessions.ts';
import { bhavcopy, bhavRow, newRun, newWindow } from '../../load/support.ts';
import { testDatabase } from '../../support/database.ts';
import { openPipeline } from '../../support/pipeline.ts';

const tradingDay = (day: string, facts: Partial<TradingDayState> = {}): TradingDayState => ({
  operation: 'GetBhavCopyCM',
  exchange: 'NSE',
  day: `2025-09-${day}`,
  state: 'missing',
  reason: 'not_requested',
  detail: null,
  due: 0,
  ...facts,
});
const spans = (gaps: readonly Gap[]) =>
  gaps.map(({ exchange, from, to, sessions, reason }) => [
    exchange,
    from.slice(8),
    to.slice(8),
    sessions,
    reason,
  ]);

describe('grouping trading days into gaps', () => {
  test('neighbouring trading days with the same reason are one gap, whatever closed days lie between', () => {
    expect(spans(groupGaps([tradingDay('04'), tradingDay('05'), tradingDay('08')], 'missing'))).toEqual([
      ['NSE', '04', '08', 3, 'not_requested'],
    ]);
  });

  test('a complete trading day, another reason and another exchange begin a new one', () => {
    const tradingDays = [
      tradingDay('01'),
      tradingDay('02', { state: 'complete', reason: null }),
      tradingDay('03'),
      tradingDay('04', { reason: 'failed', detail: 'it broke' }),
      tradingDay('05', { reason: 'failed', detail: 'it broke again' }),
      tradingDay('08', { state: 'pending', reason: 'not_published' }),
      tradingDay('05', { exchange: 'XSE', reason: 'failed' }),
    ];
    const gaps = groupGaps(tradingDays, 'missing');
    expect(spans(gaps)).toEqual([
      ['NSE', '01', '01', 1, 'not_requested'],
      ['NSE', '03', '03', 1, 'not_requested'],
      ['NSE', '04', '05', 2, 'failed'],
      ['XSE', '05', '05', 1, 'failed'],
    ]);
    expect(gaps[2]?.detail).toBe('it broke again');
    expect(spans(groupGaps(tradingDays, 'pending'))).toEqual([['NSE', '08', '08', 1, 'not_published']]);
  });
});

test('the run that fills gaps requests whole trading days together and instruments gap by gap', () => {
  const gap = (operation: string, from: string, to = from): Gap => ({
    operation,
    exchange: 'BSE',
    from,
    to,
    sessions: 1,
    reason: 'failed',
    detail: null,
  });
  const { kind, targets } = gapRequest([
    gap('GetFinRatioEOD', '2025-09-01'),
    gap('GetFinRatioEOD', '2025-09-03'),
    gap('GetTop5GainersLosers', '2025-09-01'),
    gap('GetTop5GainersLosers', '2025-09-03', '2025-09-04'),
  ]);
  expect(kind).toBe('gap_fill');
  expect(targets.map(({ operation, from, to, refetchFrom }) => [operation, from, to, refetchFrom])).toEqual([
    ['GetFinRatioEOD', '2025-09-01', '2025-09-01', null],
    ['GetFinRatioEOD', '2025-09-03', '2025-09-03', null],
    ['GetTop5GainersLosers', '2025-09-01', '2025-09-04', null],
  ]);
});

test('etl.sessions has what the calendar lists, and what was observed', async () => {
  const { url } = await testDatabase();
  const pipeline = await openPipeline({ databaseUrl: url });
  const stored = async () =>
    (
      await pipeline.db.drizzle
        .select()
        .from(sessions)
        .where(between(sessions.day, '2025-09-05', '2025-09-08'))
    )
      .map(({ exchange, day, kind }) => `${exchange} ${day} ${kind}`)
      .sort();
  const listed = pipeline.calendar.listed;
  const special = { ...pipeline.calendar, listed: { ...listed, isSpecial: () => true } };
  await writeTradingDays(pipeline.db.drizzle, [
    { exchange: 'NSE', day: '2025-09-05', kind: 'special' },
    { exchange: 'NSE', day: '2025-09-06', kind: 'observed' },
    { exchange: 'BSE', day: '2025-09-07', kind: 'session' },
  ]);
  const observed = 'NSE 2025-09-06 observed';
  await syncTradingDays(pipeline);
  const days = ['BSE 2025-09-05', 'BSE 2025-09-08', 'NSE 2025-09-05', observed, 'NSE 2025-09-08'];
  const asListed = (kind: string) => days.map((day) => (day === observed ? day : `${day} ${kind}`));
  expect(await stored()).toEqual(asListed('session'));
  await syncTradingDays({ ...pipeline, calendar: special });
  expect(await stored()).toEqual(asListed('special'));
});

describe('the days a response proves to be trading days', () => {
  const response = (...days: string[]) => ({
    batches: [{ table: bhavcopy, rows: days.map((day) => bhavRow({ symbol: 'A', trade_date: day })) }],
  });
  const monday = { from: '2025-09-08', to: '2025-09-08' };
  const bhav = operationNamed('GetBhavCopyCM');

  test('are those requested, with a single row too, but not the date of a stray record', () => {
    const days = ['2025-09-08', '2025-09-08', '2025-09-08', '2025-09-07'];
    expect(listTradingDays(bhav.name, monday, response(...days))).toEqual(['2025-09-08']);
    expect(listTradingDays(bhav.name, { from: '2025-09-07', to: '2025-09-08' }, response(...days))).toEqual([
      '2025-09-07',
      '2025-09-08',
    ]);
  });

  test('are those of a source that responds with a day of its own', () => {
    expect(listTradingDays(bhav.name, monday, response('2025-09-07', '2025-09-07'))).toEqual(['2025-09-07']);
    expect(listTradingDays(bhav.name, monday, response())).toEqual([]);
    expect(listTradingDays('GetCircuitBreakers', monday, response('2025-09-08'))).toEqual([]);
  });
});

test('a day that was requested with a filter alone is missing, and said to be so', async () => {
  const pipeline = await openPipeline({ clock: { now: () => Date.parse('2025-09-12T23:30:00+05:30') } });
  const scope = { operations: [operationNamed('GetCircuitBreakers')], exchanges: ['NSE'] };
  const days = { from: '2025-09-09', to: '2025-09-12' };
  const texts = async () =>
    (await readGaps(pipeline, { ...scope, ...days })).gaps.map((gap) => [gap.from, gap.to, gapText(gap)]);
  expect(await texts()).toEqual([['2025-09-09', '2025-09-12', 'not requested yet']]);
  const runId = await newRun(pipeline.db);
  const request = { operation: 'GetCircuitBreakers', exchange: 'NSE', filtered: true };
  await newWindow(pipeline.db, runId, 'loaded', { ...request, from: '2025-09-10', to: '2025-09-11' });
  // What has no response, and what is about another exchange, says nothing.
  await newWindow(pipeline.db, runId, 'failed', { ...request, from: '2025-09-12', to: '2025-09-12' });
  const ofOther = { ...request, exchange: 'BSE', from: '2025-09-09', to: '2025-09-09' };
  await newWindow(pipeline.db, runId, 'loaded', ofOther);
  expect(await texts()).toEqual([
    ['2025-09-09', '2025-09-09', 'not requested yet'],
    ['2025-09-10', '2025-09-11', 'requested with a filter'],
    ['2025-09-12', '2025-09-12', 'not requested yet'],
  ]);
});
