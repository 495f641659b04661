import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { operations } from '../../src/operations/registry.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';
import { manualClock } from '../sandbox/support.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import {
  backfill,
  ended,
  mostly,
  openPipeline,
  type Pipeline,
  runToEnd,
  start,
} from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';

const WEEK = { from: '2025-09-01', to: '2025-09-05' };
const THREE = ['GetSeriesChange', 'GetTop5GainersLosers', 'GetCircuitBreakers'];

describe.each(mostly('redis'))('what the source answers instead of data, the queue in %s', (backend) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });

  /** A source that behaves so, and a pipeline on it; tables are shared, so each test asks by force. */
  async function against(
    options: SandboxOptions,
    settings: Record<string, string> = {},
    clock?: Clock,
  ): Promise<{ sandbox: Sandbox; pipeline: Pipeline }> {
    const sandbox = await startSandbox({ instrumentsPerExchange: 30, ...options });
    onTestFinished(() => sandbox.close());
    const pipeline = await openPipeline({
      databaseUrl: database.url,
      sourceUrl: sandbox.url,
      backend,
      settings,
      ...(clock === undefined ? {} : { clock }),
    });
    onTestFinished(() => pipeline.close());
    return { sandbox, pipeline };
  }

  const windowsOf = async (pipeline: Pipeline, runId: number) =>
    (
      await pipeline.db.pool.query(
        'select operation, state, attempts, diagnostic, error from etl.windows where run_id = $1 order by id',
        [runId],
      )
    ).rows;

  test('a refused key blocks the whole run at once, and resuming it with a good key does all of it', async () => {
    const { sandbox, pipeline } = await against({ accessKey: 'not ours' });
    const report = await runToEnd(pipeline, backfill({ ...WEEK, force: true }));
    expect(report.state).toBe('failed');
    expect(report.error).toContain('Key not found');
    expect(report.windows.blocked).toBe(report.windows.total);
    // No window beyond those already under way was asked for.
    expect(sandbox.stats().requests).toBeLessThanOrEqual(pipeline.config.EOD_CONCURRENCY);
    for (const window of await windowsOf(pipeline, report.runId)) {
      expect(window).toMatchObject({ state: 'blocked', diagnostic: 'Access Denied. Key not found.' });
    }
    await pipeline.close();

    const good = await against({}, { EOD_INSTRUMENT_LIMIT: '2' });
    await resumeRun(good.pipeline, report.runId);
    const worker = await startWorker(good.pipeline);
    const resumed = await ended(good.pipeline, report.runId);
    await worker.stop();
    expect(resumed).toMatchObject({ state: 'completed', error: null, failures: [] });
    // The operations that waited for the bhav copies are part of what was asked.
    expect(new Set(resumed.operations.map((one) => one.operation)).size).toBe(operations.length);
    expect(resumed.windows.loaded + resumed.windows.empty).toBe(resumed.windows.total);
  });

  test('an operation the key may not use is blocked, the others are loaded', async () => {
    const { sandbox, pipeline } = await against({
      behaviour: { disabledOperations: ['GetCircuitBreakers'] },
    });
    const report = await runToEnd(pipeline, backfill({ ...WEEK, operations: THREE, force: true }));
    expect(report.state).toBe('failed');
    expect(report.windows).toMatchObject({ blocked: 5, failed: 0 });
    expect(report.failures.every((one) => one.operation === 'GetCircuitBreakers')).toBe(true);
    expect(sandbox.stats().byOperation.GetCircuitBreakers).toBeLessThanOrEqual(
      pipeline.config.EOD_CONCURRENCY,
    );
    const states = report.operations.map((one) => [one.operation, one.windows.blocked]);
    expect(Object.fromEntries(states)).toEqual({
      GetSeriesChange: 0,
      GetTop5GainersLosers: 0,
      GetCircuitBreakers: 5,
    });
  });

  test('an exchange the key may not use is blocked, the other is loaded', async () => {
    const { pipeline } = await against({ behaviour: { disabledExchanges: ['NSE'] } });
    const report = await runToEnd(
      pipeline,
      backfill({ ...WEEK, operations: ['GetBhavCopyCM'], force: true }),
    );
    const states = report.operations.map((one) => [one.exchange, one.windows.loaded, one.windows.blocked]);
    expect(states).toEqual([
      ['BSE', 5, 0],
      ['NSE', 0, 5],
    ]);
  });

  test('an instrument a trial key may not ask for is blocked, the others are loaded', async () => {
    const { pipeline } = await against({ behaviour: { demoInstruments: ['ALLOWED'] } });
    const request = {
      ...WEEK,
      operations: ['GetSeriesChange'],
      instruments: ['ALLOWED', 'OTHER'],
      force: true,
    };
    const report = await runToEnd(pipeline, backfill(request));
    expect(report.failures).toMatchObject([{ instruments: ['OTHER'], state: 'blocked' }]);
    expect(report.windows).toMatchObject({ total: 2, blocked: 1 });
  });

  test('"not ready" is asked again until it is, without using up an attempt', async () => {
    const { sandbox, pipeline } = await against({ behaviour: { notReady: 3 } }, { EOD_ATTEMPTS: '1' });
    const report = await runToEnd(pipeline, backfill({ ...WEEK, operations: THREE, force: true }));
    expect(report).toMatchObject({ state: 'completed', failures: [] });
    expect(sandbox.stats().byDiagnostic).toEqual({
      'Authentication request received. Try request data in next moment.': 3 * report.windows.total,
    });
    expect(report.requests).toBe(4 * report.windows.total);
    for (const window of await windowsOf(pipeline, report.runId)) expect(window.diagnostic).toBeNull();
  });

  test('"not ready" for longer than the time given to it fails the window', async () => {
    const { pipeline } = await against(
      { behaviour: { notReady: 1_000 } },
      { EOD_NOT_READY_BUDGET_MS: '100' },
    );
    const report = await runToEnd(
      pipeline,
      backfill({ ...WEEK, operations: ['GetSeriesChange'], force: true }),
    );
    expect(report.windows.failed).toBe(report.windows.total);
  });

  test('a line that there is no data is an empty answer, which withdraws nothing', async () => {
    const asked = { ...WEEK, operations: ['GetTop5GainersLosers'], force: true };
    const rows = async ({ db }: Pipeline) =>
      (await db.pool.query('select count(*)::int as rows from market.top_gainers_losers')).rows[0]?.rows;
    const good = await against({});
    await runToEnd(good.pipeline, backfill(asked));
    const stored = await rows(good.pipeline);
    expect(stored).toBeGreaterThan(0);
    const value = 'Data unavailable.';
    const { pipeline } = await against({ behaviour: { faults: [{ kind: 'diagnostic', value }] } });
    const report = await runToEnd(pipeline, backfill(asked));
    expect(report).toMatchObject({ state: 'completed', withdrawn: 0, suspicious: [] });
    expect(report.windows).toMatchObject({ empty: report.windows.total });
    expect(report.warnings).toMatchObject([{ warning: `the source has no data: ${value}` }]);
    expect(await rows(pipeline)).toBe(stored);
  });

  test('an unknown line is tried again twice, then the window fails with that text', async () => {
    const value = 'The hamster has left the wheel.';
    const { sandbox, pipeline } = await against(
      { behaviour: { faults: [{ kind: 'diagnostic', value, operation: 'GetSeriesChange' }] } },
      { EOD_ATTEMPTS: '7' },
    );
    const report = await runToEnd(pipeline, backfill({ ...WEEK, operations: THREE, force: true }));
    expect(report.state).toBe('failed');
    expect(report.failures).toMatchObject([{ operation: 'GetSeriesChange', state: 'failed' }]);
    expect(sandbox.stats().byOperation.GetSeriesChange).toBe(3);
    const failed = (await windowsOf(pipeline, report.runId)).filter((one) => one.state === 'failed');
    expect(failed).toMatchObject([{ attempts: 3, diagnostic: value, error: expect.stringContaining(value) }]);
    const rest = report.operations.filter((one) => one.operation !== 'GetSeriesChange');
    expect(rest.every((one) => one.windows.failed === 0)).toBe(true);
  });

  test('errors that pass are retried and leave no trace in the window', async () => {
    const { pipeline } = await against({
      behaviour: {
        faults: [
          { kind: 'status', value: '503', operation: 'GetSeriesChange', first: 1 },
          { kind: 'reset', operation: 'GetCircuitBreakers', every: 3 },
          { kind: 'half-json', operation: 'GetTop5GainersLosers', first: 1 },
        ],
      },
    });
    const report = await runToEnd(pipeline, backfill({ ...WEEK, operations: THREE, force: true }));
    expect(report).toMatchObject({ state: 'completed', failures: [] });
    expect(report.requests).toBeGreaterThan(report.windows.total);
    for (const window of await windowsOf(pipeline, report.runId)) {
      expect(window).toMatchObject({ error: null, diagnostic: null });
    }
  });

  test('the time a window waits for the hour is not taken from the time the source has to get ready', async () => {
    const clock = manualClock(Date.parse('2025-09-10T20:59:56+05:30'));
    const line = { kind: 'diagnostic', first: 1, value: 'Calls per hour are limited.' } as const;
    const { pipeline } = await against(
      { behaviour: { notReady: 2, faults: [line] } },
      { EOD_NOT_READY_BUDGET_MS: '1000' },
      clock,
    );
    const runId = await start(pipeline, backfill({ ...WEEK, operations: ['GetSeriesChange'], force: true }));
    const worker = await startWorker(pipeline);
    await waitFor(async () => {
      const found = await pipeline.db.pool.query('select from etl.call_budget where refused_at is not null');
      return found.rowCount === 1;
    });
    clock.moveTo(Date.parse('2025-09-10T21:00:03+05:30'));
    const report = await ended(pipeline, runId);
    await worker.stop();
    expect(report).toMatchObject({ state: 'completed', requests: 4 });
  });
});
