import type { Queue } from 'bullmq';
import { expect, test } from 'vitest';
import { enqueueLostWindows } from '../../../src/jobs/queue/enqueue.ts';
import type { WindowJob } from '../../../src/jobs/queue/queue.ts';
import { backfill, openPipeline, start } from '../../support/pipeline.ts';
import { waitFor } from '../../support/wait-for.ts';

test('a job that was added after the queue was read, and is being taken by a worker, is not removed as a lost one', async () => {
  const pipeline = await openPipeline({});
  const { config, db, queues } = pipeline;
  const request = backfill({ from: '2025-09-10', to: '2025-09-10', operations: ['GetBhavCopyCM'] });
  const runId = await start(pipeline, { ...request, targets: request.targets.slice(0, 1) });
  const jobs = `${config.EOD_QUEUE_PREFIX}_queue.job`;
  const readJobs = async () =>
    (await db.pool.query(`select state::text, lock_token from ${jobs} where id like 'run-%'`)).rows;
  expect(await readJobs()).toEqual([{ state: 'waiting', lock_token: null }]);

  // As BullMQ does it for a worker, but slowly.
  const worker = await db.pool.connect();
  await worker.query('begin');
  await worker.query(
    `update ${jobs} set state = 'active', lock_token = 'a worker',
       locked_until_ms = (extract(epoch from now()) * 1000)::bigint + 60000 where id like 'run-%'`,
  );
  const backfillRead = Object.create(queues.windows.backfill, { getRanges: { value: async () => [] } });
  const readBefore: Queue<WindowJob> = backfillRead;
  const windows = { ...queues.windows, backfill: readBefore };
  let hasEnded = false;
  const looking = enqueueLostWindows({ ...pipeline, queues: { ...queues, windows } }, [runId]).finally(() => {
    hasEnded = true;
  });
  await waitFor(
    async () => {
      const { rowCount } = await db.pool.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return hasEnded || rowCount === 1;
    },
    { what: 'the end of the look for lost windows, or its wait for the worker' },
  );
  await worker.query('commit');
  worker.release();
  await looking;
  expect(await readJobs()).toEqual([{ state: 'active', lock_token: 'a worker' }]);
});
