import { expect, test } from 'vitest';
import { readTonight } from '../../src/jobs/runs/read-tonight.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { reportRun, retriesOfRuns } from '../../src/load/state/runs/reports.ts';
import { startHttpServer } from '../../src/web/server.ts';
import { runCli } from '../support/cli.ts';
import { closeAfterFile } from '../support/closing.ts';
import { backfill, openPipeline, start } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { clockFrom } from './support.ts';

test('requests that fail are named with the reason and the next try, and hold back nothing else', async () => {
  const pipeline = await openPipeline({
    clock: clockFrom('2025-09-12T23:30:00+05:30'),
    sandbox: {
      instrumentsPerExchange: 20,
      behaviour: { faults: [{ kind: 'status', value: '500', operation: 'GetCircuitBreakers' }] },
    },
    // So long that the second try is not made within the test.
    settings: { EOD_BACKOFF_MS: '600000', EOD_INSTRUMENT_LIMIT: '2' },
  });
  const operations = ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetFinRatioEOD'];
  const runId = await start(pipeline, backfill({ operations, from: '2025-09-11', to: '2025-09-11' }));
  const worker = await startWorker(pipeline);
  closeAfterFile(() => worker.stop());
  // The ratios are planned when the bhav copy is loaded, although the circuit breakers are tried again.
  await waitFor(
    async () => {
      const { operations: done } = await reportRun(pipeline.db.drizzle, runId);
      const ratios = done.find(({ operation }) => operation === 'GetFinRatioEOD');
      const retries = await retriesOfRuns(pipeline.db.drizzle, [runId]);
      return ratios !== undefined && ratios.windows.open === 0 && retries.length === 1;
    },
    { what: 'the ratios, and the first failure of the circuit breakers', timeoutMs: 40_000 },
  );
  expect(await reportRun(pipeline.db.drizzle, runId)).toMatchObject({
    state: 'running',
    windows: { open: 1, loaded: 6 },
  });

  expect(await retriesOfRuns(pipeline.db.drizzle, [runId])).toEqual([
    {
      runId,
      operation: 'GetCircuitBreakers',
      exchange: 'NSE',
      error: 'the source answered with HTTP status 500',
      windows: 1,
      attempt: 2,
      retryAt: expect.stringMatching(/^\d{4}-/),
    },
  ]);
  const LINE = /GetCircuitBreakers NSE: HTTP 500, 2nd try at \d\d:\d\d/;
  expect((await readTonight(pipeline)).openRuns.map(({ retries }) => retries.length)).toEqual([1]);

  const signal = new AbortController().signal;
  const server = await startHttpServer(pipeline, { roles: ['web'], stopping: signal });
  closeAfterFile(() => server.close());
  const page = async (path: string) =>
    (await (await fetch(`${server.url}${path}`)).text()).replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ');
  const tonight = await page('/');
  expect(tonight).not.toContain('Last night is complete');
  expect(tonight).toMatch(/(Requests fail|requests fail)/);
  expect(tonight).toMatch(new RegExp(`Waiting.*Run ${runId}: .*${LINE.source}`));
  expect(await page(`/runs/${runId}`)).toMatch(LINE);

  const { stdout } = await runCli(['run', String(runId)], {
    cwd: temporaryFolder(),
    env: pipeline.environment,
  });
  expect(stdout).toMatch(LINE);
});
