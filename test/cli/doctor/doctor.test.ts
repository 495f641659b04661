import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../../src/calendar/calendar.ts';
import { nodeCheck } from '../../../src/cli/doctor/index.ts';
import { nightCheck, settingsChecks } from '../../../src/cli/doctor/settings-checks.ts';
import { certainLead } from '../../../src/cli/doctor/source-checks.ts';
import { loadConfig } from '../../../src/core/config.ts';
import { callsOfNight } from '../../../src/jobs/runs/night-calls.ts';
import { forAll } from '../../support/for-all.ts';

const clock = { now: () => Date.parse('2025-09-10T12:00:00+05:30') };
const calendar = loadCalendar();
const check = (env: Readonly<Record<string, string>>) => settingsChecks(loadConfig(env));

describe('settings', () => {
  test('as shipped do not contradict each other', () => {
    expect(check({})).toEqual([
      { state: 'ok', found: 'they fit together, and name only what exists', remedy: null },
    ]);
  });

  test.each<[Record<string, string>, RegExp]>([
    [{ EOD_BASE_URL: 'http://data.example.com' }, /clear text/],
    [{ EOD_BASE_URL: 'https://data.example.com', EOD_TLS_VERIFY: 'false' }, /impersonate it/],
    [{ EOD_HTTP_HOST: '0.0.0.0' }, /anyone who can reach the dashboard/],
    [{ EOD_ALERT_WEBHOOK: 'http://hooks.example.com/x' }, /clear text/],
    [{ EOD_HEARTBEAT_URL: 'http://hc.example.com/x' }, /clear text/],
    [{ REDIS_URL: 'redis://10.0.0.1' }, /private Postgres/],
    [{ EOD_NIGHTLY_RESERVE: '100%' }, /a backfill can never make one/],
    [{ EOD_STATEMENT_TIMEOUT_MS: '60000' }, /before EOD_LOCK_TIMEOUT_MS/],
    [{ EOD_PUBLISHED_AT: '09:00' }, /before the exchanges close/],
    [{ EOD_TIMEZONE: 'Europe/Berlin' }, /not the zone of the exchanges/],
    [{ EOD_WINDOW_DAYS: 'GetSeriesChanges=5' }, /GetSeriesChanges, which is no operation/],
    [{ EOD_OPERATION_EXCHANGES: 'GetBhavCopy=NSE' }, /GetBhavCopy, which is no operation/],
    [{ EOD_FINDING_SEVERITY: 'previous_clos=off' }, /previous_clos/],
  ])('%j', (env, pattern) => {
    const [first, ...others] = check(env);
    expect(first).toEqual({
      state: expect.stringMatching(/warning|failed/),
      found: expect.stringMatching(pattern),
      remedy: expect.stringMatching(/\w/),
    });
    expect(first?.found).not.toMatch(/[{}]|undefined/);
    expect(others).toEqual([]);
  });

  test('each of several problems has a check of its own', () => {
    expect(check({ EOD_PUBLISHED_AT: '09:00', EOD_NIGHTLY_RESERVE: '100%' })).toHaveLength(2);
  });
});

describe('the calls of a night', () => {
  test('follow the instruments', () => {
    const calls = (limit: number) =>
      callsOfNight({ config: loadConfig({ EOD_INSTRUMENT_LIMIT: String(limit) }), calendar, clock }).daily;
    // GetFinRatioEOD, and of GetFinancialRatios quarter and real time: each for both kinds of report.
    expect(calls(200) - calls(100)).toBe(100 * 6);
    expect(calls(1)).toBeGreaterThan(6);
    expect(calls(1)).toBeLessThan(100);
  });

  test.each([
    [{}, 'ok'],
    [{ EOD_CALLS_PER_HOUR: '100' }, 'warning'],
    [{ EOD_CALLS_PER_HOUR: '40' }, 'failed'],
    [{ EOD_CALLS_PER_HOUR: '40', EOD_INSTRUMENTS: 'TCS,INFY' }, 'ok'],
  ])('%j: %s', (env, state) => {
    expect(nightCheck(loadConfig(env as Record<string, string>), calendar, clock)).toMatchObject({ state });
  });
});

test.each([
  ['20.19.0', 'ok'],
  ['24.1.0', 'ok'],
  ['20.18.9', 'failed'],
  ['20.9.0', 'failed'],
  ['18.20.0', 'failed'],
])('Node %s: %s', (version, state) => {
  expect(nodeCheck(version, '>=20.19').state).toBe(state);
});

test('the difference of two clocks is never overstated, and understated by no more than the call took and a second', () => {
  const call = fc.record({
    sentAt: fc.integer({ min: 1_000_000, max: 2_000_000 }),
    took: fc.integer({ min: 0, max: 60_000 }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    ahead: fc.integer({ min: -100_000, max: 100_000 }),
  });
  forAll([call], ({ sentAt, took, share, ahead }) => {
    const statedAt = 1_000 * Math.floor((sentAt + Math.floor(took * share) - ahead) / 1_000);
    const lead = certainLead({ sentAt, receivedAt: sentAt + took, statedAt });
    // Never more than the true difference, nor less by more than the call took and a second.
    expect(Math.abs(lead)).toBeLessThanOrEqual(Math.abs(ahead));
    expect(Math.abs(lead)).toBeGreaterThanOrEqual(Math.abs(ahead) - took - 999);
    expect(lead * ahead).toBeGreaterThanOrEqual(0);
  });
  expect(certainLead({ sentAt: 0, receivedAt: 12_000, statedAt: 0 })).toBe(0);
  expect(certainLead({ sentAt: 0, receivedAt: 100, statedAt: -20_000 })).toBe(19_001);
  expect(certainLead({ sentAt: 0, receivedAt: 100, statedAt: 20_000 })).toBe(-19_900);
});
