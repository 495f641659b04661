import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ErrorKind, PipelineError } from '../../src/core/errors.ts';
import { backoffMs, judge, troubleOf, untilNextHour } from '../../src/jobs/verdict.ts';

const config = { EOD_ATTEMPTS: 3, EOD_NOT_READY_BUDGET_MS: 10_000, EOD_NOT_READY_WAIT_MS: 50 };
const FIRST = { attempt: 1, ageMs: 0 };

const error = (kind: ErrorKind, retryable = true) => new PipelineError('trouble', { kind, retryable });
const verdict = (kind: ErrorKind, soFar = FIRST, retryable = true) =>
  judge(error(kind, retryable), soFar, config);

describe('the verdict', () => {
  test.each([
    ['credential', 'run'],
    ['monthly_quota', 'run'],
    ['operation_blocked', 'operation'],
    ['exchange_blocked', 'operation_exchange'],
    ['instrument_blocked', 'window'],
    ['range_refused', 'window'],
  ] as const)('on %s blocks the %s', (kind, scope) => {
    expect(verdict(kind)).toEqual({ act: 'end', state: 'blocked', scope });
  });

  test('on the hourly quota waits for the hour, however often', () => {
    expect(verdict('hourly_quota', { attempt: 99, ageMs: 1e9 })).toEqual({ act: 'next_hour' });
  });

  test('on shutting down puts the window back', () => {
    expect(verdict('aborted', FIRST, false)).toEqual({ act: 'put_back' });
  });

  test('on data that is not ready asks again, without counting, until the time for it is used up', () => {
    const postponed = { act: 'postpone', delayMs: 50 };
    expect(verdict('not_ready', { attempt: 1, ageMs: 0 })).toEqual(postponed);
    expect(verdict('not_ready', { attempt: 99, ageMs: 9_999 })).toEqual(postponed);
    expect(verdict('not_ready', { attempt: 1, ageMs: 10_000 })).toEqual({
      ...{ act: 'end', state: 'failed', scope: 'window' },
    });
  });

  test('on passing trouble of Postgres tries again without counting, else fails the window', () => {
    expect(verdict('database', { attempt: 99, ageMs: 0 })).toMatchObject({ act: 'postpone' });
    expect(verdict('database', FIRST, false)).toEqual({ act: 'end', state: 'failed', scope: 'window' });
  });

  test.each(['timeout', 'network', 'http_status', 'unreadable', 'unknown_diagnostic'] as const)(
    'on %s retries while tries are left',
    (kind) => {
      const tries = [1, 2, 3].map((attempt) => verdict(kind, { attempt, ageMs: 0 }).act);
      expect(tries).toEqual(['retry', 'retry', 'end']);
      expect(verdict(kind, FIRST, false)).toEqual({ act: 'end', state: 'failed', scope: 'window' });
    },
  );

  test('on a defect of ours fails the window at once', () => {
    expect(judge(new TypeError('x is not a function'), FIRST, config)).toEqual({
      ...{ act: 'end', state: 'failed', scope: 'window' },
    });
    expect(judge('thrown text', FIRST, config)).toMatchObject({ act: 'end', state: 'failed' });
  });
});

describe('the pause before a try', () => {
  test('doubles, with half of it left to chance, up to five minutes', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 600_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, base, chance) => {
          const full = Math.min(300_000, base * 2 ** (attempt - 1));
          const pause = backoffMs(attempt, new Error('x'), base, chance);
          expect(pause).toBeGreaterThanOrEqual(Math.floor(full / 2));
          expect(pause).toBeLessThanOrEqual(Math.ceil(full));
        },
      ),
    );
    expect([1, 2, 3].map((attempt) => backoffMs(attempt, null, 100, 0))).toEqual([50, 100, 200]);
  });

  test('is what the source asked for, where it asked', () => {
    const asked = new PipelineError('busy', { kind: 'http_status', retryable: true, retryAfterMs: 7_000 });
    expect(backoffMs(4, asked, 10, 0.5)).toBe(7_000);
  });
});

describe('the next full hour', () => {
  const IST = 19_800;

  test('comes at half past by UTC for Indian clocks', () => {
    const until = (time: string) => untilNextHour(Date.parse(`2025-09-10T${time}Z`), IST);
    expect(until('10:00:00')).toBe(30 * 60_000);
    expect(until('10:29:59.999')).toBe(1);
    expect(until('10:30:00')).toBe(3_600_000);
  });

  test('is always ahead, within an hour, and full', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1e12, max: 4e12 }), fc.constantFrom(0, IST, -12_600), (now, offset) => {
        const wait = untilNextHour(now, offset);
        expect(wait).toBeGreaterThan(0);
        expect(wait).toBeLessThanOrEqual(3_600_000);
        expect((now + wait + offset * 1_000) % 3_600_000).toBe(0);
      }),
    );
  });
});

describe('what is kept of trouble', () => {
  test("is the sentence, and the source's own line where there is one", () => {
    const said = new PipelineError('refused', {
      kind: 'credential',
      retryable: false,
      diagnostic: 'Key Expired.',
    });
    expect(troubleOf(said)).toEqual({ error: 'refused', diagnostic: 'Key Expired.' });
    expect(troubleOf('text')).toEqual({ error: 'text' });
  });
});
