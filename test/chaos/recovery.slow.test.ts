import { randomBytes } from 'node:crypto';
import { describe, expect, type TestContext, test } from 'vitest';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { type RestartableRedis, startRestartableRedis } from '../support/chaos/redis.ts';
import { testDatabase } from '../support/database.ts';
import {
  type Backend,
  backfill,
  ended,
  openPipeline,
  type PipelineOptions,
  start,
} from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** 28 windows of one trading day each. */
const REQUEST = backfill({
  operations: ['GetCircuitBreakers'],
  exchanges: ['NSE'],
  from: '2025-08-04',
  to: '2025-09-12',
});

async function openParts(
  { onTestFinished }: TestContext,
  options: Pick<PipelineOptions, 'settings'> & { readonly backend: Backend },
) {
  const sandbox = await openSandbox({ instrumentsPerExchange: 20, behaviour: { delayMs: 150 } });
  const pipeline = await openPipeline({
    sourceUrl: sandbox.url,
    backend: options.backend,
    settings: { EOD_ACCESS_KEY: `key-${randomBytes(6).toString('hex')}`, ...options.settings },
  });
  onTestFinished(() => pipeline.close());
  return { sandbox, pipeline };
}

describe('a Redis that comes back empty', () => {
  async function onOwnRedis(context: TestContext) {
    const redis = await startRestartableRedis(temporaryFolder());
    context.onTestFinished(() => redis.stop());
    return { redis, ...(await openParts(context, { backend: 'redis', settings: { REDIS_URL: redis.url } })) };
  }

  async function restartAfter(calls: number, countRequests: () => number, redis: RestartableRedis) {
    await waitFor(() => countRequests() >= calls, { what: `${calls} calls` });
    await redis.restart();
  }

  test.concurrent('gets the rest of the windows back from a worker that lives on, at once', async (context) => {
    const { redis, sandbox, pipeline } = await onOwnRedis(context);
    const worker = await startWorker(pipeline);
    context.onTestFinished(() => worker.stop(500));
    const runId = await start(pipeline, REQUEST);
    await restartAfter(5, () => sandbox.stats().requests, redis);
    const since = performance.now();
    const report = await ended(pipeline, runId);
    expect(report).toMatchObject({ state: 'completed', windows: { total: 28, failed: 0, open: 0 } });
    // Looking from time to time alone would take half a minute.
    expect(performance.now() - since).toBeLessThan(20_000);
  });

  test.concurrent('does not keep a worker from stopping', async (context) => {
    const { redis, sandbox, pipeline } = await onOwnRedis(context);
    const worker = await startWorker(pipeline);
    await start(pipeline, REQUEST);
    await restartAfter(5, () => sandbox.stats().requests, redis);
    const since = performance.now();
    await worker.stop();
    expect(performance.now() - since).toBeLessThan(12_000);
  });
});

test('a database connection that breaks in use fails its statement and nothing else', async ({
  onTestFinished,
}) => {
  const { url } = await testDatabase();
  const database = openDatabase({ url, connections: 2 });
  onTestFinished(() => database.close());
  const client = await database.pool.connect();
  await client.query('begin');
  const [backend] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows;
  const gone = new Promise((resolve) => client.once('end', resolve));
  await query(url, 'select pg_terminate_backend($1)', [backend?.pid]);
  // An error event nobody listened to would have ended the process by now.
  await gone;
  await expect(client.query('select 1')).rejects.toThrow();
  client.release(true);
  expect((await database.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
