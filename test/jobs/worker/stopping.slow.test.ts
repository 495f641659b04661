import { describe, expect, test } from 'vitest';
import type { TickJob } from '../../../src/jobs/queue/queue.ts';
import { handToQueue } from '../../../src/jobs/worker/hand-to-queue.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import { startCuttingProxy } from '../../support/chaos/cutting-proxy.ts';
import { startCli } from '../../support/cli.ts';
import { testDatabase } from '../../support/database.ts';
import { spawnEod } from '../../support/eod.ts';
import { backends, backfill, ended, openPipeline, start } from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';

const REQUEST = backfill({ from: '2025-09-01', to: '2025-09-05', operations: ['GetTop5GainersLosers'] });
/** Far longer than these tests take: whatever is picked up again was put back, not found stalled. */
const SETTINGS = { EOD_STALL_MS: '60000', EOD_TIMEOUT_MS: '60000' };

describe('a worker that is stopped in mid-window', () => {
  /** A worker with one window under way at a source that takes `delayMs` to respond. */
  async function underWay(backend: (typeof backends)[number], delayMs: number) {
    const sandbox = await openSandbox({ instrumentsPerExchange: 30, behaviour: { delayMs } });
    const options = { databaseUrl: (await testDatabase()).url, backend, settings: SETTINGS };
    const pipeline = await openPipeline({ ...options, sourceUrl: sandbox.url });
    const worker = startCli(['up', '--roles', 'worker'], {
      env: pipeline.environment,
      cwd: temporaryFolder(),
    });
    await worker.output(/eod is up/);
    const runId = await start(pipeline, REQUEST);
    await waitFor(() => sandbox.stats().requests === 1, { everyMs: 5 });
    const windows = async () =>
      (await pipeline.db.pool.query('select state, error, attempts from etl.windows')).rows;
    return { sandbox, options, pipeline, worker, runId, windows };
  }

  test.concurrent.each(backends)('lets it finish where that is soon (queue in %s)', async (backend) => {
    const { pipeline, worker, runId, windows } = await underWay(backend, 800);
    const signalledAt = performance.now();
    worker.signal('SIGTERM');
    expect((await worker.ended).code).toBe(0);
    expect(performance.now() - signalledAt).toBeLessThan(5_000);
    expect(await windows()).toMatchObject([{ state: 'loaded', attempts: 1 }]);
    expect((await ended(pipeline, runId)).state).toBe('completed');
  });

  test.concurrent.each(backends)(
    'puts it back where not, within ten seconds (queue in %s)',
    async (backend) => {
      const { sandbox, options, pipeline, worker, runId, windows } = await underWay(backend, 50_000);
      const signalledAt = performance.now();
      worker.signal('SIGTERM');
      expect((await worker.ended).code).toBe(0);
      expect(performance.now() - signalledAt).toBeLessThan(10_000);
      expect(await windows()).toEqual([{ state: 'pending', error: null, attempts: 1 }]);
      await sandbox.close();

      const next = await openPipeline({
        ...options,
        sandbox: { instrumentsPerExchange: 30 },
        prefix: pipeline.config.EOD_QUEUE_PREFIX,
      });
      const second = await startWorker(next);
      expect((await ended(next, runId, 5_000)).state).toBe('completed');
      expect(await windows()).toMatchObject([{ state: 'loaded', attempts: 2 }]);
      await second.stop();
    },
  );
});

test.concurrent.each(['postgres', 'redis'] as const)(
  'a process that is stopped ends in time where %s accepts connections and never responds',
  async (backend) => {
    const pipeline = await openPipeline({ databaseUrl: (await testDatabase()).url, backend });
    const name = backend === 'postgres' ? 'DATABASE_URL' : 'REDIS_URL';
    const proxy = await startCuttingProxy(pipeline.environment[name] ?? '');
    const env = { ...pipeline.environment, [name]: proxy.url, EOD_HTTP_PORT: '0' };
    const process = spawnEod(['up'], { env, cwd: temporaryFolder() });
    await process.output(/eod is up/);
    const [, url = ''] = await process.output(/dashboard: (http:\S+)/);
    expect((await fetch(`${url}runs`)).status).toBe(200);
    proxy.setSilent();
    const [ready, metrics, runs] = await Promise.all(
      ['readyz', 'metrics', 'runs'].map(async (path) => fetch(`${url}${path}`)),
    );
    expect(ready?.status).toBe(503);
    expect(metrics?.status).toBe(200);
    expect(runs?.status).toBe(backend === 'postgres' ? 503 : 200);
    process.kill('SIGTERM');
    expect(await process.ended).toMatchObject({ code: 0 });
    await pipeline.close();
    await proxy.close();
  },
);

test('a worker that is closed while it connects leaves no connection behind', async () => {
  const pipeline = await openPipeline({});
  const { db, queues } = pipeline;
  const worker = queues.work('backfill', async () => undefined, { concurrency: 1 });
  await worker.close();
  await queues.close();
  const others = `select application_name from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'eod'`;
  await waitFor(async () => (await db.pool.query(others)).rows.length === 0, { what: 'the end of them' });
  await pipeline.close();
});

test.each(backends)('a job is postponed by a part of a millisecond too (queue in %s)', async (backend) => {
  // That is what is left of most pauses while the source is down. A failure would make BullMQ try again at once.
  const pipeline = await openPipeline({ backend, settings: { EOD_CALLS_PER_HOUR: '1000' } });
  const { queues } = pipeline;
  const failures: (string | undefined)[] = [];
  const tick = { operation: 'GetBhavCopyCM', exchange: 'NSE' } as const;
  await queues.ticks.addBulk([{ name: 'tick', data: tick, opts: { attempts: 3, removeOnComplete: true } }]);
  const worker = queues.work<TickJob>(
    'ticks',
    async (job, token) => {
      if (failures.push(job.failedReason) > 1) return;
      await handToQueue(job, token, { act: 'postpone', delayMs: 20.25 }, new Error('the source is down'));
    },
    { concurrency: 1 },
  );
  await waitFor(() => failures.length > 1);
  expect(failures).toEqual([undefined, undefined]);
  await worker.close();
  await pipeline.close();
});
