import { Redis } from 'ioredis';
import pg from 'pg';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { requeueLostWindows } from '../../src/jobs/worker/requeue.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { pauseRun } from '../../src/load/state/runs.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import { testDatabase } from '../support/database.ts';
import {
  type Backend,
  backends,
  backfill,
  countsOf,
  ended,
  marketContents,
  openPipeline,
  type Pipeline,
  runToEnd,
  start,
} from '../support/pipeline.ts';
import { freePrefix, redisUrl } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';

const REQUEST = backfill({
  from: '2025-09-01',
  to: '2025-09-05',
  operations: ['GetBhavCopyCM', 'GetSeriesChange', 'GetFinRatioEOD'],
});

/** Makes the queue forget everything, as a Redis without disk does when it restarts. */
async function loseQueue(backend: Backend, prefix: string, databaseUrl: string): Promise<void> {
  if (backend === 'redis') {
    const redis = new Redis(redisUrl());
    const keys = await redis.keys(`${prefix}:*`);
    expect(keys.length).toBeGreaterThan(0);
    await redis.del(...keys);
    redis.disconnect();
    return;
  }
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`drop schema ${prefix}_queue cascade`);
  await client.end();
}

describe.each(backends)('when the queue in %s is lost', (backend) => {
  let sandbox: Sandbox;
  let undisturbed: Awaited<ReturnType<typeof marketContents>>;
  let counts: ReturnType<typeof countsOf>;
  let databaseUrl: string;
  let prefix: string;

  const open = () =>
    openPipeline({
      databaseUrl,
      sourceUrl: sandbox.url,
      backend,
      prefix,
      settings: { EOD_INSTRUMENT_LIMIT: '2' },
    });

  beforeAll(async () => {
    sandbox = await startSandbox({ instrumentsPerExchange: 30 });
    databaseUrl = (await testDatabase()).url;
    prefix = freePrefix();
    const pipeline = await open();
    counts = countsOf(await runToEnd(pipeline, REQUEST));
    undisturbed = await marketContents(pipeline);
    await pipeline.close();
    return () => sandbox.close();
  });
  beforeEach(async () => {
    databaseUrl = (await testDatabase()).url;
    prefix = freePrefix();
  });

  async function finish(pipeline: Pipeline, runId: number): Promise<void> {
    const worker = await startWorker(pipeline);
    const report = await ended(pipeline, runId);
    await worker.stop();
    expect(countsOf(report)).toEqual(counts);
    expect(await marketContents(pipeline)).toEqual(undisturbed);
  }

  test('before any work was done, the next worker finds all of it in etl', async () => {
    const before = await open();
    const runId = await start(before, REQUEST);
    await before.close();
    await loseQueue(backend, prefix, databaseUrl);
    await finish(await open(), runId);
  });

  test('with windows done, under way and waiting, the next worker does the rest', async () => {
    const before = await open();
    const runId = await start(before, REQUEST);
    await before.db.pool.query(
      `update etl.windows set state = 'running', attempts = 1, started_at = now()
        where id in (select id from etl.windows where run_id = $1 order by id limit 2)`,
      [runId],
    );
    await before.close();
    await loseQueue(backend, prefix, databaseUrl);
    await finish(await open(), runId);
  });

  test('while a worker is at work, it brings the rest back and goes on', async () => {
    const pipeline = await open();
    const runId = await start(pipeline, REQUEST);
    await pauseRun(pipeline.db.drizzle, runId);
    const worker = await startWorker(pipeline);
    await waitFor(async () =>
      Object.values(await pipeline.queues.windows.backfill.getJobCounts()).every((jobs) => jobs === 0),
    );
    // The queue is empty now and the worker waits for jobs; the run goes on without anybody telling the queue.
    await pipeline.db.pool.query("update etl.runs set state = 'running' where id = $1", [runId]);
    await requeueLostWindows(pipeline);
    const report = await ended(pipeline, runId);
    await worker.stop();
    expect(countsOf(report)).toEqual(counts);
    expect(await marketContents(pipeline)).toEqual(undisturbed);
  });

  test('windows whose process died between commit and enqueue are found although the queue knows others', async () => {
    const pipeline = await open();
    const runId = await start(pipeline, REQUEST);
    const late = await pipeline.db.pool.query<{ id: number }>(
      `insert into etl.windows (run_id, operation, exchange, from_date, to_date)
       values ($1, 'GetCircuitBreakers', 'NSE', '2025-09-01', '2025-09-01') returning id::int`,
      [runId],
    );
    const worker = await startWorker(pipeline);
    await ended(pipeline, runId);
    await worker.stop();
    const found = await pipeline.db.pool.query('select state from etl.windows where id = $1', [
      late.rows[0]?.id,
    ]);
    expect(found.rows).toEqual([{ state: expect.stringMatching(/^(loaded|empty)$/) }]);
  });

  test('a run whose last worker died before closing it is closed', async () => {
    const pipeline = await open();
    const runId = await start(pipeline, REQUEST);
    await pipeline.db.pool.query(
      "update etl.windows set state = 'empty', finished_at = now() where run_id = $1",
      [runId],
    );
    await pipeline.db.pool.query("update etl.runs set deferred = '[]' where id = $1", [runId]);
    const worker = await startWorker(pipeline);
    expect((await ended(pipeline, runId)).state).toBe('completed');
    await worker.stop();
  });
});
