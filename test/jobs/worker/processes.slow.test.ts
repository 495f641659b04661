import { beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { type RunningEod, spawnEod } from '../../support/eod.ts';
import {
  backfill,
  countsOf,
  ended,
  marketContents,
  mostly,
  openPipeline,
  type Pipeline,
  runToEnd,
  start,
} from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';

const REQUEST = backfill({
  from: '2025-08-25',
  to: '2025-09-05',
  operations: [
    'GetBhavCopyCM',
    'GetCircuitBreakers',
    'GetSeriesChange',
    'GetTop5GainersLosers',
    'GetFinRatioEOD',
  ],
});
const CONCURRENCY = 2;
const SETTINGS = {
  EOD_INSTRUMENT_LIMIT: '1',
  EOD_CONCURRENCY: String(CONCURRENCY),
  // Short, so that what a killed worker had is picked up soon.
  EOD_STALL_MS: '2000',
};

/** A worker of its own process on the pipeline's queue, ready to work. */
async function workerProcess(pipeline: Pipeline): Promise<RunningEod> {
  const worker = spawnEod(['up', '--roles', 'worker'], {
    env: { ...pipeline.environment, EOD_LOG_LEVEL: 'info' },
    cwd: temporaryFolder(),
  });
  await worker.output(/eod is up/);
  return worker;
}

/** Windows this process has loaded, by its own log. */
const loadedBy = (worker: RunningEod) => worker.stderr().split('"window loaded"').length - 1;

describe('two worker processes on one queue', () => {
  let sandbox: Sandbox;
  let expected: { counts: ReturnType<typeof countsOf>; market: Awaited<ReturnType<typeof marketContents>> };

  const open = async (backend: 'postgres' | 'redis') =>
    openPipeline({ sourceUrl: sandbox.url, backend, settings: SETTINGS });

  beforeAll(async () => {
    // Slow enough that a worker has a window under way, also a moment after that was seen.
    sandbox = await openSandbox({ instrumentsPerExchange: 60, behaviour: { delayMs: 500 } });
    const pipeline = await open('postgres');
    const report = await runToEnd(pipeline, REQUEST);
    expect(report).toMatchObject({ state: 'completed', failures: [] });
    expected = { counts: countsOf(report), market: await marketContents(pipeline) };
    await pipeline.close();
  });

  test.concurrent.each(mostly('redis'))(
    'in %s share a backfill; one is killed in mid-window, the other finishes it',
    async (backend) => {
      const pipeline = await open(backend);
      const [doomed, heir] = await Promise.all([workerProcess(pipeline), workerProcess(pipeline)]);
      const runId = await start(pipeline, REQUEST);
      await waitFor(() => loadedBy(doomed) >= 2 && loadedBy(heir) >= 2, { everyMs: 5 });
      await waitFor(async () => (await running(pipeline)) > CONCURRENCY, { everyMs: 5 });
      doomed.kill('SIGKILL');
      await doomed.ended;

      const report = await ended(pipeline, runId);
      expect(report).toMatchObject({ state: 'completed', failures: [] });
      expect(countsOf(report)).toEqual(expected.counts);
      expect(await marketContents(pipeline)).toEqual(expected.market);
      // What the killed one had under way was requested once more, and nothing else.
      const twice = await pipeline.db.pool.query<{ windows: number }>(
        'select count(*)::int as windows from etl.windows where run_id = $1 and attempts = 2',
        [runId],
      );
      const redone = twice.rows[0]?.windows ?? 0;
      expect(redone).toBeGreaterThan(0);
      expect(redone).toBeLessThanOrEqual(CONCURRENCY);
      expect(report.requests).toBe(report.windows.total + redone);
      // Both did the work, and no other process. The kill may come between the end of a window and its line.
      await waitFor(() => loadedBy(doomed) + loadedBy(heir) >= report.windows.loaded - CONCURRENCY);
      heir.kill('SIGTERM');
      expect((await heir.ended).code).toBe(0);
      await pipeline.close();
    },
  );
});

/** Windows under way, no matter who has them. */
async function running({ db }: Pipeline): Promise<number> {
  const result = await db.pool.query<{ windows: number }>(
    "select count(*)::int as windows from etl.windows where state = 'running'",
  );
  return result.rows[0]?.windows ?? 0;
}
