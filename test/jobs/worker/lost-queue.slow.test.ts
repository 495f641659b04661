import fc from 'fast-check';
import { Redis } from 'ioredis';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { windowJobId } from '../../../src/jobs/queue/job-ids.ts';
import { type Queues, queuedIds } from '../../../src/jobs/queue/queue.ts';
import { resumeRun } from '../../../src/jobs/runs/run-control.ts';
import { requeueLostWindows } from '../../../src/jobs/worker/chores.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { type RunReport, reportRun } from '../../../src/state/runs/reports.ts';
import { pauseRun } from '../../../src/state/runs/runs.ts';
import { testDatabase } from '../../support/database.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { startServer } from '../../support/http-server.ts';
import { losePart } from '../../support/lose-part.ts';
import {
  type Backend,
  backfill,
  countsOf,
  ended,
  marketContents,
  mostly,
  openPipeline,
  type Pipeline,
  queueEmpty,
  runToEnd,
  start,
  workToEnd,
} from '../../support/pipeline.ts';
import { freePrefix, redisUrl } from '../../support/redis.ts';
import { openSandbox } from '../../support/sandbox.ts';
import { execute } from '../../support/template.ts';
import { waitFor } from '../../support/wait-for.ts';

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
  await execute(databaseUrl, `drop schema ${prefix}_queue cascade`);
}

/** Turns the waiting jobs into finished ones that are kept, as older versions of this program left some. */
async function keepAsFinished(backend: Backend, prefix: string, databaseUrl: string): Promise<void> {
  if (backend === 'postgres') {
    const state = `case when random() < 0.5 then 'failed' else 'completed' end`;
    await execute(
      databaseUrl,
      `update ${prefix}_queue.job set state = (${state})::${prefix}_queue.job_state`,
    );
    return;
  }
  const redis = new Redis(redisUrl());
  const [waiting = ''] = await redis.keys(`${prefix}:*:backfill:prioritized`);
  const ids = await redis.zrange(waiting, '0', '-1');
  expect(ids.length).toBeGreaterThan(0);
  for (const [at, id] of ids.entries()) {
    await redis.zadd(
      waiting.replace(/prioritized$/, at % 2 === 0 ? 'failed' : 'completed'),
      String(Date.now()),
      id,
    );
  }
  await redis.del(waiting);
  redis.disconnect();
}

describe.each(mostly('redis'))('when the queue in %s is lost', (backend) => {
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
      settings: { EOD_INSTRUMENT_LIMIT: '2', EOD_STALL_MS: '1000' },
    });

  beforeAll(async () => {
    sandbox = await openSandbox({ instrumentsPerExchange: 30 });
    databaseUrl = (await testDatabase()).url;
    prefix = freePrefix();
    const pipeline = await open();
    counts = countsOf(await runToEnd(pipeline, REQUEST));
    undisturbed = await marketContents(pipeline);
    await pipeline.close();
  });
  beforeEach(async () => {
    databaseUrl = (await testDatabase()).url;
    prefix = freePrefix();
  });

  async function finish(pipeline: Pipeline, runId: number): Promise<void> {
    await expectAll(pipeline, await workToEnd(pipeline, runId));
  }

  async function expectAll(pipeline: Pipeline, report: RunReport): Promise<void> {
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
    await pauseRun(pipeline.db.drizzle, runId, 'a test');
    const worker = await startWorker(pipeline);
    await queueEmpty(pipeline);
    // The queue is empty now and the worker waits for jobs; the run goes on without anybody telling the queue.
    await pipeline.db.pool.query("update etl.runs set state = 'running' where id = $1", [runId]);
    await requeueLostWindows(pipeline);
    const report = await ended(pipeline, runId);
    await worker.stop();
    await expectAll(pipeline, report);
  });

  test('windows whose process died between commit and enqueue are found although the queue knows others', async () => {
    const pipeline = await open();
    const runId = await start(pipeline, REQUEST);
    await pipeline.db.pool.query('update etl.runs set is_key_accepted = true');
    await requeueLostWindows(pipeline);
    const late = await pipeline.db.pool.query<{ id: number }>(
      `insert into etl.windows (run_id, operation, exchange, from_date, to_date)
       values ($1, 'GetCircuitBreakers', 'NSE', '2025-09-01', '2025-09-01') returning id::int`,
      [runId],
    );
    // At once, not when the jobs that the queue knows are done.
    await requeueLostWindows(pipeline);
    const jobId = windowJobId({ runId, windowId: late.rows[0]?.id ?? 0 });
    expect(await queuedIds(pipeline.queues.windows.backfill)).toContain(jobId);
    await workToEnd(pipeline, runId);
    const result = await pipeline.db.pool.query('select state from etl.windows where id = $1', [
      late.rows[0]?.id,
    ]);
    expect(result.rows).toEqual([{ state: expect.stringMatching(/^(loaded|empty)$/) }]);
  });

  test('a run whose last worker died before closing it is closed', async () => {
    const pipeline = await open();
    const runId = await start(pipeline, REQUEST);
    await pipeline.db.pool.query(
      "update etl.windows set state = 'empty', finished_at = now() where run_id = $1",
      [runId],
    );
    await pipeline.db.pool.query("update etl.runs set deferred = '[]' where id = $1", [runId]);
    expect((await workToEnd(pipeline, runId)).state).toBe('completed');
  });

  test('in part, whichever part it is and at any moment, every window is done all the same', async () => {
    const losses = fc.array(
      fc.record({
        /** It is lost once this many windows have ended. */
        after: fc.nat(15),
        share: fc.constantFrom(0.1, 0.5, 0.9),
        salt: fc.nat(1_000),
      }),
      { minLength: 1, maxLength: 3 },
    );
    await forAllAsync(
      [losses, fc.boolean()],
      { numRuns: 2, seed: 20_251_123, endOnFailure: true },
      async (lost, atWork) => {
        databaseUrl = (await testDatabase()).url;
        prefix = freePrefix();
        const pipeline = await open();
        const runId = await start(pipeline, REQUEST);
        if (!atWork) for (const part of lost) await losePart(backend, prefix, databaseUrl, part);
        const worker = await startWorker(pipeline);
        const inOrder = [...lost].sort((loss, otherLoss) => loss.after - otherLoss.after);
        for (const part of atWork ? inOrder : []) {
          await waitFor(
            async () => {
              await requeueLostWindows(pipeline);
              const { windows, state } = await reportRun(pipeline, runId);
              return windows.total - windows.open >= part.after || state !== 'running';
            },
            { what: `the end of ${part.after} windows`, everyMs: 20, timeoutMs: 20_000 },
          );
          await losePart(backend, prefix, databaseUrl, part);
        }
        await waitFor(
          async () => {
            await requeueLostWindows(pipeline);
            return (await reportRun(pipeline, runId)).state !== 'running';
          },
          { what: 'the end of the run', everyMs: 500, timeoutMs: 40_000 },
        );
        const report = await ended(pipeline, runId);
        await worker.stop();
        await expectAll(pipeline, report);
        await pipeline.close();
      },
    );
  }, 1_800_000);

  test('jobs that BullMQ keeps as failed or completed do not keep their windows from being enqueued', async () => {
    const pipeline = await open();
    const runId = await start(pipeline, REQUEST);
    await keepAsFinished(backend, prefix, databaseUrl);
    await finish(pipeline, runId);
  });

  test.each([
    ['refuses the record', '[{"Symbol": "A", "ClosePrice": "n/a"}]'],
    ['sends nonsense', 'nonsense'],
  ])(
    'a run resumed before the job of its failed window is removed does not wait: the source %s',
    async (_, body) => {
      let requests = 0;
      const sourceUrl = await startServer((_request, response) => {
        requests += 1;
        response.end(body);
      });
      const pipeline = await openPipeline({ sourceUrl, backend, settings: { EOD_ATTEMPTS: '1' } });
      const options = {
        from: '2025-09-01',
        to: '2025-09-01',
        operations: ['GetBhavCopyCM'],
        exchanges: ['NSE'],
      };
      const runId = await start(pipeline, backfill(options));
      let isTaken = false;
      let resumed = false;
      const work: Queues['work'] = (name, processor, settings, onEnd) =>
        pipeline.queues.work(
          name,
          async (job: Parameters<typeof processor>[0], token) => {
            // The run has ended when the processor returns, and only then does BullMQ remove the job.
            const outcome = await Promise.allSettled([processor(job, token)]);
            if (!isTaken) {
              isTaken = true;
              await resumeRun(pipeline, runId);
              resumed = true;
            }
            return outcome[0].status === 'fulfilled' ? outcome[0].value : Promise.reject(outcome[0].reason);
          },
          settings,
          onEnd,
        );
      const worker = await startWorker({ ...pipeline, queues: { ...pipeline.queues, work } });
      await waitFor(async () => resumed && (await reportRun(pipeline, runId)).state === 'failed', {
        what: 'the second end of the run',
        timeoutMs: 15_000,
      });
      expect(requests).toBe(2);
      await worker.stop();
    },
  );
});
