import { describe, expect, test } from 'vitest';
import type { SeenRequest } from '../../src/sandbox/index.ts';
import { manualClock } from '../sandbox/support.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { accountsOf, coverageRows, openSetup, start, tally, windowsOf } from './support.ts';

const WEEK = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'], from: '2025-09-08', to: '2025-09-11' };

const NOT_READY = 'Authentication request received. Try request data in next moment.';

describe.each(mostly('redis'))('data that is not ready yet (queue on %s)', (backend) => {
  test('fails with that line once the budget of waiting is used up', async () => {
    const setup = await openSetup({
      backend,
      settings: { EOD_NOT_READY_BUDGET_MS: '600', EOD_NOT_READY_WAIT_MS: '50' },
      behaviour: { notReady: 1_000_000 },
    });
    const report = await setup.run({ ...WEEK, to: '2025-09-08' });
    expect(report).toMatchObject({ state: 'failed', windows: { failed: 1 } });
    expect(report.requests).toBeGreaterThan(3);
    expect(report.requests).toBeLessThanOrEqual(14);
    expect((await windowsOf(setup, report.runId))[0]).toMatchObject({
      state: 'failed',
      diagnostic: NOT_READY,
    });
    expect((await coverageRows(setup))[0]).toMatchObject({ state: 'failed', diagnostic: NOT_READY });
    await accountsOf(setup, report);
  });

  test('counts only waits for the source, not stalls and outages before', async () => {
    const setup = await openSetup({
      backend,
      settings: { EOD_NOT_READY_BUDGET_MS: '600' },
      behaviour: { notReady: 2 },
    });
    const runId = await start(setup, WEEK);
    // As a worker leaves them that was killed an hour ago.
    await setup.db.pool.query(
      "update etl.windows set state = 'running', attempts = 1, started_at = now() - interval '1 hour'",
    );
    await setup.work();
    expect(await ended(setup, runId)).toMatchObject({ state: 'completed', windows: { loaded: 4 } });
  });

  test('is fetched before anything new is requested', async () => {
    const setup = await openSetup({
      backend,
      // So many calls an hour that none is worth waiting for.
      settings: { EOD_CONCURRENCY: '1', EOD_NOT_READY_WAIT_MS: '100' },
      behaviour: { notReady: 1, delayMs: 20 },
    });
    const report = await setup.run({ ...WEEK, from: '2025-07-28' });
    expect(report).toMatchObject({
      state: 'completed',
      requests: 64,
      windows: { loaded: 32 },
      callsPerLoadedWindow: 2,
    });
    const response = await fetch(`${setup.sandbox.url}/_sandbox/requests`);
    const requests = (await response.json()) as SeenRequest[];
    const days = requests.sort((a, b) => a.number - b.number).map(({ params }) => params.from);
    // If it waited for every day that was not requested yet, it would be the 33rd call.
    expect(days.findIndex((day, at) => days.indexOf(day) < at)).toBeLessThan(16);
  });
});

test('where each response must be prepared, every second call of an hour loads a window', async () => {
  const clock = manualClock(Date.parse('2025-09-12T22:10:00+05:30'));
  const setup = await openSetup({
    clock,
    settings: { EOD_CALLS_PER_HOUR: '40', EOD_NIGHTLY_RESERVE: '0', EOD_NOT_READY_WAIT_MS: '1000' },
    behaviour: { notReady: 1, callsPerHour: 40 },
  });
  const runId = await start(setup, { ...WEEK, from: '2025-06-16' });
  await setup.work();
  await waitFor(async () => {
    const budget = await setup.db.pool.query('select from etl.call_budget where calls = 40');
    return budget.rowCount === 1;
  });
  await waitFor(async () => (await windowsOf(setup, runId)).every(({ state }) => state !== 'running'));
  const { loaded } = tally((await windowsOf(setup, runId)).map(({ state }) => state));
  // Each of the four workers may have requested one more.
  expect(loaded).toBeGreaterThanOrEqual((40 - 4) / 2);
});

describe('text nobody knows', () => {
  const text = `Scheduled maintenance ${'until the morning '.repeat(60)}`;

  test('that passes is forgotten', async () => {
    const setup = await openSetup({ behaviour: { faults: [{ kind: 'diagnostic', value: text, first: 2 }] } });
    const report = await setup.run({ ...WEEK, to: '2025-09-08' });
    expect(report).toMatchObject({ state: 'completed', requests: 3 });
    expect((await windowsOf(setup, report.runId))[0]).toMatchObject({ diagnostic: null, error: null });
  });
});

test('once the hour is used up, nothing is requested before the next clock hour, and no attempt is used up', async () => {
  const line = 'Calls per hour are limited.';
  const clock = manualClock(Date.parse('2025-09-12T22:59:56+05:30'));
  const setup = await openSetup({
    clock,
    settings: { EOD_ATTEMPTS: '1', EOD_CONCURRENCY: '1' },
    behaviour: { faults: [{ kind: 'diagnostic', value: line, first: 1 }] },
  });
  const runId = await start(setup, WEEK);
  await setup.work(2);
  const closed = await waitFor(async () => {
    const result = await setup.db.pool.query<{ diagnostic: string }>(
      'select diagnostic from etl.call_budget where refused_at is not null',
    );
    return result.rows[0]?.diagnostic;
  });
  expect(closed).toBe(line);
  // Both workers saw the door closed; the clock has not moved, so nothing is requested.
  await waitFor(async () => (await windowsOf(setup, runId)).every(({ state }) => state === 'pending'));
  expect(setup.sandbox.stats().requests).toBe(1);
  clock.moveTo(Date.parse('2025-09-12T23:00:03+05:30'));
  const report = await ended(setup, runId);
  expect(report).toMatchObject({ state: 'completed', requests: 5, windows: { loaded: 4 } });
  await accountsOf(setup, report);
});
