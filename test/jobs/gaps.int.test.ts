import { describe, expect, test } from 'vitest';
import { sessionChanges, sessionDaysOf } from '../../src/jobs/responses/sync-sessions.ts';
import { type Gap, gapRequest, groupGaps } from '../../src/jobs/runs/read-gaps.ts';
import type { SessionState } from '../../src/load/state/coverage/completeness.ts';
import type { SessionRow } from '../../src/load/state/sessions.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { bhavcopy, bhavRow } from '../load/support.ts';

const session = (day: string, facts: Partial<SessionState> = {}): SessionState => ({
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

describe('grouping sessions into gaps', () => {
  test('neighbouring sessions with the same reason are one gap, whatever closed days lie between', () => {
    expect(spans(groupGaps([session('04'), session('05'), session('08')], 'missing'))).toEqual([
      ['NSE', '04', '08', 3, 'not_requested'],
    ]);
  });

  test('a complete session, another reason and another exchange begin a new one', () => {
    const sessions = [
      session('01'),
      session('02', { state: 'complete', reason: null }),
      session('03'),
      session('04', { reason: 'failed', detail: 'it broke' }),
      session('05', { reason: 'failed', detail: 'it broke again' }),
      session('08', { state: 'pending', reason: 'not_published' }),
      session('05', { exchange: 'XSE', reason: 'failed' }),
    ];
    const gaps = groupGaps(sessions, 'missing');
    expect(spans(gaps)).toEqual([
      ['NSE', '01', '01', 1, 'not_requested'],
      ['NSE', '03', '03', 1, 'not_requested'],
      ['NSE', '04', '05', 2, 'failed'],
      ['XSE', '05', '05', 1, 'failed'],
    ]);
    expect(gaps[2]?.detail).toBe('it broke again');
    expect(spans(groupGaps(sessions, 'pending'))).toEqual([['NSE', '08', '08', 1, 'not_published']]);
  });
});

test('the run that fills gaps requests whole sessions together and instruments gap by gap', () => {
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

describe('keeping etl.sessions in line with the calendar', () => {
  const row = (day: string, kind: SessionRow['kind'] = 'session'): SessionRow => ({
    exchange: 'NSE',
    day,
    kind,
  });

  test('writes what differs and removes what is no session, but keeps what was observed', () => {
    const wanted = [row('2025-09-01'), row('2025-09-02', 'special'), row('2025-09-06', 'special')];
    const present = [
      row('2025-09-01'),
      row('2025-09-02'),
      row('2025-09-03'),
      row('2025-09-06', 'observed'),
      row('2025-09-07', 'observed'),
    ];
    expect(sessionChanges(wanted, present)).toEqual({
      write: [row('2025-09-02', 'special'), row('2025-09-06', 'special')],
      remove: [row('2025-09-03')],
    });
    expect(sessionChanges(present, present)).toEqual({ write: [], remove: [] });
  });
});

describe('the days a response proves to be sessions', () => {
  const response = (...days: string[]) => ({
    batches: [{ table: bhavcopy, rows: days.map((day) => bhavRow({ symbol: 'A', trade_date: day })) }],
  });
  const monday = { from: '2025-09-08', to: '2025-09-08' };
  const bhav = operationNamed('GetBhavCopyCM');

  test('are those requested, with a single row too, but not the date of a stray record', () => {
    const days = ['2025-09-08', '2025-09-08', '2025-09-08', '2025-09-07'];
    expect(sessionDaysOf(bhav.name, monday, response(...days))).toEqual(['2025-09-08']);
    expect(sessionDaysOf(bhav.name, { from: '2025-09-07', to: '2025-09-08' }, response(...days))).toEqual([
      '2025-09-07',
      '2025-09-08',
    ]);
  });

  test('are those of a source that responds with a day of its own', () => {
    expect(sessionDaysOf(bhav.name, monday, response('2025-09-07', '2025-09-07'))).toEqual(['2025-09-07']);
    expect(sessionDaysOf(bhav.name, monday, response())).toEqual([]);
    expect(sessionDaysOf('GetCircuitBreakers', monday, response('2025-09-08'))).toEqual([]);
  });
});
