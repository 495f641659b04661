import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { cancelRun, resumeRun } from '../../../src/jobs/runs/run-control.ts';
import { type RunningWorker, startWorker } from '../../../src/jobs/worker/worker.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { reportRun } from '../../../src/state/runs/reports.ts';
import { pauseRun } from '../../../src/state/runs/runs.ts';
import {
  backfill,
  ended,
  mostly,
  openPipeline,
  type Pipeline,
  queueEmpty,
  start,
} from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';
import { waitFor } from '../../support/wait-for.ts';

const REQUEST = backfill({
  from: '2025-08-25',
  to: '2025-09-05',
  operations: ['GetCircuitBreakers', 'GetBhavCopyCM', 'GetFinRatioEOD'],
});

describe.each(mostly('postgres'))('a run that is taken in hand, the queue in %s', (backend) => {
  let sandbox: Sandbox;
  let pipeline: Pipeline;
  let worker: RunningWorker;
  beforeAll(async () => {
    sandbox = await openSandbox({ instrumentsPerExchange: 20, behaviour: { delayMs: 30 } });
  });
  beforeEach(async () => {
    pipeline = await openPipeline({
      sourceUrl: sandbox.url,
      backend,
      settings: { EOD_INSTRUMENT_LIMIT: '1' },
    });
    worker = await startWorker(pipeline);
    return async () => {
      await worker.stop();
      await pipeline.close();
    };
  });

  const report = (runId: number) => reportRun(pipeline, runId);
  const someDone = (runId: number) =>
    waitFor(async () => (await report(runId)).windows.loaded >= 3, { everyMs: 10 });
  const underWay = async (runId: number) => {
    const result = await pipeline.db.pool.query(
      "select from etl.windows where run_id = $1 and state = 'running' limit 1",
      [runId],
    );
    return result.rowCount === 1;
  };

  test('cancelled: nothing further is started, what is loaded stays', async () => {
    const runId = await start(pipeline, REQUEST);
    await someDone(runId);
    await cancelRun(pipeline, runId);
    const { state, windows } = await report(runId);
    expect(state).toBe('cancelled');
    expect(windows.open).toBe(0);
    expect(windows.cancelled).toBeGreaterThan(0);
    await queueEmpty(pipeline);
    const after = await report(runId);
    expect(after.windows).toEqual(windows);
    expect(new Set(after.failures.map((failure) => failure.state))).toEqual(new Set(['cancelled']));
    await expect(cancelRun(pipeline, runId)).rejects.toMatchObject({ kind: 'usage' });
    await expect(resumeRun(pipeline, runId)).rejects.toMatchObject({ kind: 'usage' });
  });

  test('cancelled while somebody plans more of it: those windows are cancelled too', async () => {
    await worker.stop();
    const runId = await start(pipeline, REQUEST);
    const planner = await pipeline.db.pool.connect();
    await planner.query('begin');
    await planner.query('select from etl.runs where id = $1 for update', [runId]);
    await planner.query(
      `insert into etl.windows (run_id, operation, exchange, from_date, to_date)
       values ($1, 'GetFinRatioEOD', 'BSE', '2025-09-01', '2025-09-01')`,
      [runId],
    );
    const cancelled = cancelRun(pipeline, runId);
    // Requested on another connection: within a transaction the view does not change.
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await waitFor(async () => (await pipeline.db.pool.query(waiting)).rowCount === 1);
    await planner.query('commit');
    planner.release();
    await cancelled;
    const { windows } = await report(runId);
    expect(windows).toMatchObject({ open: 0, cancelled: windows.total });
  });

  test('paused: nothing further is started until it is resumed, then all of it is done', async () => {
    const runId = await start(pipeline, REQUEST);
    await someDone(runId);
    await pauseRun(pipeline.db.drizzle, runId, 'a test');
    await waitFor(async () => !(await underWay(runId)));
    const { state, error, windows } = await report(runId);
    expect({ state, error }).toEqual({ state: 'paused', error: 'a test' });
    expect(windows.open).toBeGreaterThan(0);
    const requestsBefore = sandbox.stats().requests;
    await queueEmpty(pipeline);
    expect(sandbox.stats().requests).toBe(requestsBefore);
    await resumeRun(pipeline, runId);
    expect(await ended(pipeline, runId)).toMatchObject({ state: 'completed', error: null, failures: [] });
    await expect(resumeRun(pipeline, runId)).rejects.toMatchObject({ kind: 'usage' });
  });

  test('resumed long after it failed: does only what failed, with all its time and tries', async () => {
    const runId = await start(pipeline, REQUEST);
    const first = await ended(pipeline, runId);
    await pipeline.db.pool.query(
      `update etl.windows set state = 'failed', error = 'no response', started_at = now() - interval '60 days',
         fetched = 0, inserted = 0, duplicate = 0, unchanged = 0
       where id in (select id from etl.windows where run_id = $1 order by id limit 4)`,
      [runId],
    );
    await pipeline.db.pool.query("update etl.runs set state = 'failed' where id = $1", [runId]);
    const requestsBefore = sandbox.stats().requests;
    await resumeRun(pipeline, runId);
    const again = await ended(pipeline, runId);
    expect(again).toMatchObject({ state: 'completed', failures: [] });
    expect(again.windows).toEqual(first.windows);
    expect(sandbox.stats().requests).toBe(requestsBefore + 4);
  });

  test('unknown: said so', async () => {
    for (const act of [cancelRun, resumeRun]) {
      await expect(act(pipeline, 999_999)).rejects.toMatchObject({ kind: 'usage' });
    }
  });
});
