import { DrizzleQueryError } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ErrorKind, PipelineError } from '../../src/core/errors.ts';
import { hourStart, turnWait, untilNextHour } from '../../src/jobs/worker/quota.ts';
import { backoffMs, judge, type TrySoFar, troubleOf } from '../../src/jobs/worker/verdict.ts';

const config = { EOD_ATTEMPTS: 3, EOD_NOT_READY_BUDGET_MS: 10_000, EOD_NOT_READY_WAIT_MS: 50 };
const FIRST: TrySoFar = { attempt: 1, ageMs: 0, days: 1, nextHourMs: 777 };

const error = (kind: ErrorKind, retryable = true) => new PipelineError('trouble', { kind, retryable });
const verdict = (kind: ErrorKind, soFar: Partial<TrySoFar> = {}, retryable = true) =>
  judge(error(kind, retryable), { ...FIRST, ...soFar }, config);

describe('the verdict', () => {
  test.each([
    ['credential', 'key'],
    ['monthly_quota', 'key'],
    ['operation_blocked', 'operation'],
    ['exchange_blocked', 'exchange'],
    ['instrument_blocked', 'window'],
    ['range_refused', 'window'],
  ] as const)('on %s blocks the %s', (kind, scope) => {
    expect(verdict(kind)).toEqual({ act: 'end', state: 'blocked', scope });
  });

  test('on the hourly quota waits for the hour, however often', () => {
    expect(verdict('hourly_quota', { attempt: 99, ageMs: 1e9 })).toEqual({ act: 'hold', delayMs: 777 });
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

  test.each([
    ['a code', Object.assign(new Error('terminating connection'), { code: '57P01' }), 'postpone'],
    ['no code: a broken connection', new Error('Connection terminated unexpectedly'), 'postpone'],
    ['the code of a mistake', Object.assign(new Error('no such column'), { code: '42703' }), 'end'],
  ] as const)('on an error of the driver with %s, bare or as drizzle wraps it', (_what, raw, act) => {
    expect(judge(raw, FIRST, config)).toMatchObject({ act });
    expect(judge(new DrizzleQueryError('select 1', [], raw), FIRST, config)).toMatchObject({ act });
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

describe('a range that is too much', () => {
  const range = (limitDays?: number) =>
    new PipelineError('too wide', {
      ...{ kind: 'range_refused', retryable: false },
      ...(limitDays === undefined ? {} : { limitDays }),
    });

  test('is asked in pieces of the length the source named, and that is remembered', () => {
    expect(judge(range(5), { ...FIRST, days: 30 }, config)).toEqual({ act: 'split', days: 5, learned: true });
  });

  test('is asked in halves where it named none', () => {
    expect(judge(range(), { ...FIRST, days: 30 }, config)).toEqual({
      act: 'split',
      days: 15,
      learned: false,
    });
    for (const kind of ['too_large', 'timeout'] as const) {
      expect(verdict(kind, { days: 7 })).toEqual({ act: 'split', days: 4, learned: false });
    }
  });

  test('is asked in halves where the answer broke off, but not where there was none', () => {
    for (const kind of ['unreadable', 'network'] as const) {
      const cut = new PipelineError('half of it', { kind, retryable: true, cutShort: true });
      expect(judge(cut, { ...FIRST, days: 7 }, config)).toEqual({ act: 'split', days: 4, learned: false });
      expect(judge(cut, FIRST, config)).toEqual({ act: 'retry' });
      expect(verdict(kind, { days: 7 })).toEqual({ act: 'retry' });
    }
  });

  test('always gets shorter, down to one day, which is refused for good', () => {
    for (let days = 64; days > 1; ) {
      const next = judge(range(days), { ...FIRST, days }, config);
      expect(next).toMatchObject({ act: 'split' });
      const shorter = next.act === 'split' ? next.days : 0;
      expect(shorter).toBeLessThan(days);
      days = shorter;
    }
    expect(judge(range(1), FIRST, config)).toEqual({ act: 'end', state: 'blocked', scope: 'window' });
  });
});

describe('the clock hour', () => {
  const IST = 'Asia/Kolkata';
  const until = (time: string) => untilNextHour(Date.parse(`2025-09-10T${time}Z`), IST);

  test('turns at half past by UTC for Indian clocks, and calls start two seconds into it', () => {
    expect(until('10:00:00')).toBe(30 * 60_000 + 2_000);
    expect(until('10:29:59.999')).toBe(2_001);
    expect(until('10:30:00')).toBe(3_602_000);
  });

  test('no call starts within two seconds of its turn', () => {
    const wait = (time: string) => turnWait(Date.parse(`2025-09-10T${time}Z`), IST);
    expect(wait('10:29:57')).toBe(0);
    expect(wait('10:29:59')).toBe(3_000);
    expect(wait('10:30:01')).toBe(1_000);
    expect(wait('10:30:02')).toBe(0);
  });

  test('starts at a full hour of the zone, never ahead of now', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1e12, max: 4e12 }),
        fc.constantFrom('UTC', IST, 'America/St_Johns'),
        (now, zone) => {
          const start = hourStart(now, zone);
          expect(now - start).toBeGreaterThanOrEqual(0);
          expect(now - start).toBeLessThan(3_600_000);
          expect(start % 60_000).toBe(0);
        },
      ),
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
