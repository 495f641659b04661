import { expect, test } from 'vitest';
import { readGaps } from '../../src/jobs/runs/read-gaps.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import { readTonight } from '../../src/jobs/runs/read-tonight.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { listRetries, readRunProgress, reportRun } from '../../src/state/runs/reports.ts';
import { pauseRun } from '../../src/state/runs/runs.ts';
import { startHttpServer } from '../../src/web/server.ts';
import { runCli, runJson } from '../support/cli.ts';
import { closeAfterFile } from '../support/closing.ts';
import { backfill, openPipeline, start } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { clockFrom } from './support.ts';

/** Fewer than the failures in a row after which the source counts as down. */
const FAILING = ['GetCircuitBreakers', 'GetConsolidatedPledge', 'GetCorporateActions', 'GetSeriesChange'];

/** Of this operation nothing is due for the requested day. */
const NOT_DUE = 'GetConsolidatedPledge';

test('requests that fail are named with the reason and the next try, and hold back nothing else', async () => {
  const pipeline = await openPipeline({
    clock: clockFrom('2025-09-12T23:30:00+05:30'),
    sandbox: {
      instrumentsPerExchange: 20,
      behaviour: {
        faults: FAILING.map((operation) => ({ kind: 'status' as const, value: '500', operation })),
      },
    },
    // So long that the second try is not made within the test.
    settings: { EOD_BACKOFF_MS: '600000', EOD_INSTRUMENT_LIMIT: '2' },
  });
  const days = { from: '2025-09-11', to: '2025-09-11', exchanges: ['NSE'] };
  const runId = await start(pipeline, backfill(days));
  const worker = await startWorker(pipeline);
  closeAfterFile(() => worker.stop());
  const report = () => reportRun(pipeline, runId);
  // What is about each instrument is planned when the bhav copy is loaded, although others are tried again.
  await waitFor(
    async () => {
      // Between the load of the bhav copy and the plan that follows it, nothing else is open either.
      const { isDeferred } = await readRunProgress(pipeline.db.drizzle, runId);
      const { operations } = await report();
      const open = operations.filter(({ windows }) => windows.open > 0);
      const retries = await listRetries(pipeline.db.drizzle, [runId]);
      return !isDeferred && retries.length === FAILING.length && open.length === FAILING.length;
    },
    { what: 'everything but what fails', timeoutMs: 40_000 },
  );
  const { state, operations } = await report();
  expect(state).toBe('running');
  const loaded = operations.filter(({ windows }) => windows.loaded > 0).map(({ operation }) => operation);
  expect(loaded.sort()).toEqual([
    'GetBhavCopyCM',
    'GetCorporateActionsCategories',
    'GetFinRatioEOD',
    'GetFinRatioSnapshot',
    'GetSectoralClassification',
    'GetTop5GainersLosers',
    'GetTotalTradeHighlights',
  ]);

  const retries = await listRetries(pipeline.db.drizzle, [runId]);
  expect(retries.map(({ operation }) => operation).sort()).toEqual(FAILING);
  expect(retries.find(({ operation }) => operation === 'GetCircuitBreakers')).toEqual({
    runId,
    operation: 'GetCircuitBreakers',
    exchange: 'NSE',
    error: 'the source responded with HTTP status 500',
    windows: 1,
    attempt: 2,
    retryAt: expect.stringMatching(/^\d{4}-/),
    isPaused: false,
  });
  // They are listed as failed, not as never requested, although coverage has no row of them yet.
  const scope = { operations: FAILING.map(operationNamed), exchanges: ['NSE'] };
  const { gaps } = await readGaps(pipeline, { ...scope, from: days.from, to: days.to });
  expect(gaps.map(({ operation }) => operation).sort()).toEqual(FAILING.filter((name) => name !== NOT_DUE));
  for (const { reason, detail } of gaps) {
    expect({ reason, detail }).toEqual({
      reason: 'failed',
      detail: 'the source responded with HTTP status 500',
    });
  }

  const LINE = /GetCircuitBreakers NSE: HTTP 500, 2nd call at \d\d:\d\d:\d\d/;
  const [inProgress] = (await readTonight(pipeline)).openRuns;
  expect(inProgress?.retries).toHaveLength(FAILING.length);
  // When they will be loaded is not known.
  expect(inProgress?.finishAt).toBeNull();

  const signal = new AbortController().signal;
  const server = await startHttpServer(pipeline, { roles: ['web'], stopping: signal });
  closeAfterFile(() => server.close());
  const page = async (path: string) =>
    (await (await fetch(`${server.url}${path}`)).text()).replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ');
  const tonight = await page('/');
  expect(tonight).not.toMatch(/is complete/);
  expect(tonight).toMatch(/Requests of \d+ data sets have failed and are tried again: see why/);
  expect(tonight).toMatch(new RegExp(`Run ${runId} .*${LINE.source}`));
  expect(await page(`/runs/${runId}`)).toMatch(LINE);

  const terminal = { cwd: temporaryFolder(), env: pipeline.environment };
  expect((await runCli(['runs', String(runId)], terminal)).stdout).toMatch(LINE);
  expect((await runCli(['status'], terminal)).stdout).toMatch(
    new RegExp(`^run ${runId}: ${LINE.source}$`, 'm'),
  );
  expect((await runJson<Status>(['status'], terminal)).json.openRuns).toMatchObject([
    { runId, retries: inProgress?.retries.map(({ operation, error }) => ({ operation, error })) },
  ]);
  // No time is named at which nothing is tried.
  await pauseRun(pipeline.db.drizzle, runId, 'a test');
  expect(await page('/')).toContain('It was paused: a test.');
  expect((await runCli(['status'], terminal)).stdout).toMatch(
    new RegExp(`^run ${runId}: GetCircuitBreakers NSE: HTTP 500, 2nd call when the run is resumed$`, 'm'),
  );
});
