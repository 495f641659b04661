import { describe, expect } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { ended } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { door, FORTNIGHT } from './breaker-support.ts';
import { clockFrom, coverageRows, EVENING, openSetup, start, tally, test, windowsOf } from './support.ts';

describe('a source that is down', () => {
  test('as far as one operation goes fails no window of another', async () => {
    const setup = await openSetup({
      settings: { EOD_OUTAGE_PATIENCE_MS: '60000', EOD_ATTEMPTS: '2' },
      behaviour: { faults: [{ kind: 'status', value: '503', operation: 'GetCircuitBreakers' }] },
    });
    const operations = ['GetCircuitBreakers', 'GetBhavCopyCM'];
    const report = await setup.run({ ...FORTNIGHT, from: '2025-07-28', operations });
    const ends = (await windowsOf(setup, report.runId)).map(
      ({ operation, state }) => `${operation} ${state}`,
    );
    expect(tally(ends)).toEqual({ 'GetCircuitBreakers failed': 32, 'GetBhavCopyCM loaded': 32 });
    // Responses of the other operation between them keep the breaker closed: each window has its two attempts.
    expect(setup.sandbox.stats().byOperation.GetCircuitBreakers).toBeLessThan(2 * 32 + 20);
  });

  test('for longer than EOD_OUTAGE_PATIENCE_MS: the run fails in bounded time, with few calls', async () => {
    const { state, url } = await door(0);
    // A backfill waits a sixtieth of this.
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    const begun = Date.now();
    const report = await setup.run(FORTNIGHT);
    expect(Date.now() - begun).toBeLessThan(15_000);
    expect(report).toMatchObject({ state: 'failed', windows: { total: 11, failed: 11 } });
    expect(state.refused).toBeLessThanOrEqual(10);
    const windows = await windowsOf(setup, report.runId);
    expect(
      windows.filter(({ error }) => /^gave up after \d+ s without a usable response: \S/.test(error ?? '')),
    ).not.toHaveLength(0);
    expect(tally((await coverageRows(setup)).map((row) => row.state))).toEqual({ failed: 11 });
  });

  test('is found to be back by the next run: one call tries it, and every window waits for that call', async () => {
    const sandbox = await openSandbox({
      clock: clockFrom(EVENING),
      instrumentsPerExchange: 40,
      behaviour: { delayMs: 200 },
    });
    const { state, url } = await door(sandbox.port);
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    expect(await setup.run({ ...FORTNIGHT, from: '2025-09-10' })).toMatchObject({ state: 'failed' });
    const whileDown = state.refused;
    state.open = true;
    const weeks = { ...FORTNIGHT, from: '2025-07-28' };
    const report = await ended(setup, await start(setup, weeks));
    expect(report).toMatchObject({ state: 'completed', windows: { total: 32, loaded: 32, failed: 0 } });
    expect([sandbox.stats().requests, state.refused]).toEqual([32, whileDown]);
  });

  test('is tried once more for each run before its windows are given up, and for a run that is resumed', async () => {
    const { state, url } = await door(0);
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    const report = await setup.run(FORTNIGHT);
    const tried = [state.refused];
    const other = await ended(setup, await start(setup, { ...FORTNIGHT, exchanges: ['BSE'] }));
    tried.push(state.refused);
    await resumeRun(setup, report.runId);
    const resumed = await ended(setup, report.runId);
    tried.push(state.refused);
    for (const one of [report, other, resumed]) {
      expect(one).toMatchObject({ state: 'failed', windows: { failed: 11 } });
    }
    for (const [at, calls] of tried.entries()) {
      const before = tried[at - 1] ?? 0;
      expect(calls).toBeGreaterThan(before + 1);
      expect(calls).toBeLessThanOrEqual(before + 10);
    }
  });

  test('that hangs is found out at a single day, before every long window was split', async () => {
    const setup = await openSetup({
      settings: { EOD_TIMEOUT_MS: '150', EOD_OUTAGE_PATIENCE_MS: '1000', EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'hang' }] },
    });
    // Thirteen windows of 30 days: 390 days, each of which would time out.
    const report = await setup.run({
      operations: ['GetTotalTradeHighlights'],
      from: '2024-08-19',
      to: '2025-09-11',
    });
    expect(report.state).toBe('failed');
    expect(setup.sandbox.stats().requests).toBeLessThan(40);
  });
});
