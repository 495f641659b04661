import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildBody, joinAlerts, shortSubject, tradingDayAlert } from '../../../src/jobs/alerts/alert.ts';
import { forAll } from '../../support/for-all.ts';

const OPERATIONS = ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetSeriesChange'];
const missing = (operation: string, day: number) =>
  tradingDayAlert(
    'gaps',
    {
      operation,
      exchange: 'NSE',
      day: `2025-09-${day}`,
      reason: 'failed',
      detail: `HTTP 503 after ${day} s`,
    },
    { run: 7 },
  );
const failed = {
  kind: 'run_failed',
  subject: 'nightly: GetBhavCopyCM NSE',
  message: 'no response for 182 s (02:08 to 02:12, 33 windows of GetBhavCopyCM NSE); run 7 failed',
  facts: { run: 7, failed: [] },
} as const;

describe('what is posted', () => {
  test('takes at most 2 kB and has a subject of at most 120 characters, whatever it is about', () => {
    const text = fc.string({ maxLength: 3_000, unit: 'grapheme' });
    const facts = fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.array(text, { maxLength: 90 })));
    forAll([fc.record({ subject: text, message: text, facts })], {}, (alert) => {
      const body = buildBody(alert);
      expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThanOrEqual(2_048);
      expect(body.subject.length).toBeLessThanOrEqual(120);
      if (alert.message.length <= 80 && Object.keys(alert.facts).length === 0)
        expect(body.message).toBe(alert.message);
    });
  });

  test('subjects that begin alike stay different', () => {
    const begin = 'x'.repeat(200);
    expect(shortSubject(`${begin}a`)).not.toBe(shortSubject(`${begin}b`));
    expect(shortSubject('short')).toBe('short');
  });

  test('a run that failed and left trading days missing is one post: the cause first, then how much is missing, prices first', () => {
    const days = Array.from({ length: 12 }, (_, at) => at + 10);
    const tradingDays = days.flatMap((day) =>
      OPERATIONS.toReversed().map((operation) => missing(operation, day)),
    );
    const posts = joinAlerts([...tradingDays, failed]);
    expect(posts).toHaveLength(1);
    expect(posts[0]).toMatchObject({ kind: 'run_failed', subject: failed.subject });
    expect(posts[0]?.of).toHaveLength(37);
    expect(posts[0]?.message).toMatch(
      /^no response for 182 s .* failed; 36 trading days of 3 data sets are missing after the night: Prices, bhavcopy_cm NSE 2025-09-10 to 2025-09-21 \(12 trading days\), [^;]* \(for example, failed: HTTP 503 after 10 s\)$/,
    );
    expect(posts[0]?.message.match(/bhavcopy_cm/g)).toHaveLength(1);
    expect(posts[0]?.message.match(/HTTP 503/g)).toHaveLength(1);
    const { of: _, ...post } = posts[0] as (typeof posts)[number];
    expect(buildBody(post).facts).toMatchObject({ sessionsTotal: 36 });
  });

  test('runs are separate posts, and trading days that no run left are one more', () => {
    const late = tradingDayAlert(
      'late_data',
      {
        operation: 'GetBhavCopyCM',
        exchange: 'NSE',
        day: '2025-09-12',
        reason: 'not_requested',
        detail: null,
      },
      { workers: 0 },
    );
    const other = { ...failed, facts: { run: 8 } };
    expect(joinAlerts([failed, other, late]).map(({ of }) => of.length)).toEqual([1, 1, 1]);
  });
});
