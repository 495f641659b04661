import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { dueAt } from '../../src/jobs/runs/read-arrivals.ts';
import { latestOf } from '../../src/jobs/runs/read-tonight.ts';
import type { SessionState } from '../../src/load/state/completeness.ts';
import { operationNamed } from '../../src/operations/registry.ts';

const PAIR = { operation: 'GetBhavCopyCM', exchange: 'NSE' };

const session = (day: string, state: SessionState['state'], records = 0): SessionState => ({
  ...PAIR,
  day,
  state,
  reason: state === 'complete' ? null : 'never_asked',
  detail: null,
  records,
});

describe('the latest session of a data set', () => {
  test('is the last one that is due; those before it are missing from the first complete one on', () => {
    const latest = latestOf(PAIR, [
      session('2025-09-01', 'missing'),
      session('2025-09-02', 'complete', 100),
      session('2025-09-03', 'missing'),
      session('2025-09-04', 'complete', 300),
      session('2025-09-05', 'complete', 120),
      session('2025-09-08', 'missing'),
      session('2025-09-09', 'pending'),
    ]);
    expect(latest).toEqual({
      ...PAIR,
      due: '2025-09-08',
      state: 'missing',
      reason: 'never_asked',
      detail: null,
      lastComplete: '2025-09-05',
      records: 120,
      usual: 200,
      missingBefore: 1,
    });
  });

  test('is nothing where none is due, and nothing was wanted where none was ever complete', () => {
    expect(latestOf(PAIR, [session('2025-09-09', 'pending')])).toMatchObject({ due: null, state: 'nothing' });
    const never = [session('2025-09-08', 'missing'), session('2025-09-09', 'missing')];
    expect(latestOf(PAIR, never)).toMatchObject({ state: 'missing', missingBefore: 0, lastComplete: null });
  });
});

describe('the data of a day is due', () => {
  const at = (name: string, day: string, settings = {}) =>
    new Date(dueAt(operationNamed(name), day, loadConfig(settings)) * 1000).toISOString();

  test('when its schedule asks for it, on the clocks of EOD_TIMEZONE', () => {
    expect(at('GetBhavCopyCM', '2025-09-12')).toBe('2025-09-12T15:45:00.000Z');
    expect(at('GetBhavCopyCM', '2025-09-12', { EOD_PUBLISHED_AT: '23:00' })).toBe('2025-09-12T17:30:00.000Z');
  });

  test('on the next weekday of a weekly schedule', () => {
    const { schedule } = operationNamed('GetSectoralClassification');
    expect(schedule.on).toBe('saturday');
    expect(at('GetSectoralClassification', '2025-09-10').slice(0, 10)).toBe('2025-09-13');
  });
});
