import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { enqueueOpenWindows } from '../../../src/jobs/queue/enqueue.ts';
import { windowJobId } from '../../../src/jobs/queue/job-ids.ts';
import { queuedIds } from '../../../src/jobs/queue/queue.ts';
import { requeueLostWindows } from '../../../src/jobs/worker/chores.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { backfill, mostly, openPipeline, start } from '../../support/pipeline.ts';

test.each(mostly('postgres'))(
  'what a look at a complete queue reads does not grow with it (queue on %s)',
  async (backend) => {
    const pipeline = await openPipeline({ backend });
    const { db, queues } = pipeline;
    const runId = await start(
      pipeline,
      backfill({ operations: ['GetBhavCopyCM'], from: '2025-09-08', to: '2025-09-12' }),
    );
    /** How many bytes Postgres sends while lost windows are looked for. */
    const read = async (isThorough: boolean): Promise<number> => {
      const alone = openDatabase({ url: pipeline.config.DATABASE_URL ?? '', connections: 1 });
      const sockets: Socket[] = [];
      alone.pool.on('connect', (client) =>
        sockets.push((client as unknown as { connection: { stream: Socket } }).connection.stream),
      );
      await requeueLostWindows({ ...pipeline, db: alone }, isThorough);
      const bytes = sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
      await alone.close();
      return bytes;
    };
    // As after the first call of the run.
    await db.pool.query('update etl.runs set is_key_accepted = true');
    const few = await read(false);
    const added = await db.pool.query<{ id: number }>(
      `insert into etl.windows (run_id, operation, exchange, from_date, to_date)
     select $1, 'GetBhavCopyCM', 'NSE', day, day from generate_series(date '2020-01-01', '2021-12-31', '1 day') day returning id::int`,
      [runId],
    );
    await enqueueOpenWindows(pipeline, [runId]);
    expect(await read(false)).toBeLessThan(few * 1.1);
    expect(await read(true)).toBeGreaterThan(few * 5);

    // One that is lost is noticed by the counts alone.
    const windowId = added.rows.at(-1)?.id ?? 0;
    const jobId = windowJobId({ runId, windowId });
    await queues.windows.backfill.remove(jobId);
    expect(await queuedIds(queues.windows.backfill)).not.toContain(jobId);
    await requeueLostWindows(pipeline, false);
    expect(await queuedIds(queues.windows.backfill)).toContain(jobId);
    await pipeline.close();
  },
);
