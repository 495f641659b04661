import { beforeAll, describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/core/clock.ts';
import { resumeRun } from '../../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import { defaultOperations } from '../../../src/operations/index.ts';
import type { SandboxOptions } from '../../../src/sandbox/index.ts';
import { manualClock } from '../../sandbox/support.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import {
  backfill,
  ended,
  mostly,
  openPipeline,
  type Pipeline,
  runToEnd,
  start,
  workToEnd,
} from '../../support/pipeline.ts';
import { waitFor } from '../../support/wait-for.ts';

const WEEK = { from: '2025-09-01', to: '2025-09-05' };

describe.each(mostly('redis'))('what the source responds instead of data, the queue in %s', (backend) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });

  /** A pipeline on a source that behaves so; tables are shared, so each test requests by force. */
  const against = (sandbox: SandboxOptions, settings: Record<string, string> = {}, clock?: Clock) =>
    openPipeline({
      databaseUrl: database.url,
      sandbox: { instrumentsPerExchange: 30, ...sandbox },
      backend,
      settings,
      ...(clock === undefined ? {} : { clock }),
    });

  test('a run that a refused key has blocked does all of it once it is resumed with a good key', async () => {
    const refused = await against({ accessKey: 'not ours' });
    const report = await runToEnd(refused, backfill({ ...WEEK, force: true }));
    expect(report.state).toBe('failed');
    expect(report.error).toContain('Key not found');
    expect(report.windows.blocked).toBe(report.windows.total);
    await refused.close();

    const good = await against({}, { EOD_INSTRUMENT_LIMIT: '2' });
    await resumeRun(good, report.runId);
    const resumed = await workToEnd(good, report.runId);
    expect(resumed).toMatchObject({ state: 'completed', error: null, failures: [] });
    // The operations that waited for the bhav copies are part of what was requested.
    expect(new Set(resumed.operations.map((operation) => operation.operation)).size).toBe(
      defaultOperations.length,
    );
    expect(resumed.windows.loaded + resumed.windows.empty).toBe(resumed.windows.total);
  });

  test('a line that there is no data is an empty response, which withdraws nothing', async () => {
    const options = { ...WEEK, operations: ['GetTop5GainersLosers'], force: true };
    const rows = async ({ db }: Pipeline) =>
      (await db.pool.query('select count(*)::int as rows from market.top_gainers_losers')).rows[0]?.rows;
    const good = await against({});
    await runToEnd(good, backfill(options));
    const stored = await rows(good);
    expect(stored).toBeGreaterThan(0);
    const value = 'Data unavailable.';
    const pipeline = await against({ behaviour: { faults: [{ kind: 'diagnostic', value }] } });
    const report = await runToEnd(pipeline, backfill(options));
    expect(report).toMatchObject({ state: 'completed', withdrawn: 0, suspicious: [] });
    expect(report.windows).toMatchObject({ empty: report.windows.total });
    expect(report.warnings).toMatchObject([{ warning: `the source has no data: ${value}` }]);
    expect(await rows(pipeline)).toBe(stored);
  });

  test('the time a window waits for the hour is not taken from the time the source has to get ready', async () => {
    const clock = manualClock(Date.parse('2025-09-10T20:59:56+05:30'));
    const line = { kind: 'diagnostic', first: 1, value: 'Calls per hour are limited.' } as const;
    const pipeline = await against(
      { behaviour: { notReady: 2, faults: [line] } },
      { EOD_NOT_READY_BUDGET_MS: '1000' },
      clock,
    );
    const runId = await start(pipeline, backfill({ ...WEEK, operations: ['GetSeriesChange'], force: true }));
    const worker = await startWorker(pipeline);
    await waitFor(async () => {
      const result = await pipeline.db.pool.query('select from etl.call_budget where refused_at is not null');
      return result.rowCount === 1;
    });
    clock.moveTo(Date.parse('2025-09-10T21:00:03+05:30'));
    const report = await ended(pipeline, runId);
    await worker.stop();
    expect(report).toMatchObject({ state: 'completed', requests: 4 });
  });
});
