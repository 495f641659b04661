import { expect } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { ended, queueEmpty } from '../support/pipeline.ts';
import { NIGHT, REQUESTS, slowSource } from './same-request-support.ts';
import { openSetup, start, test } from './support.ts';

test('backfills with the same requests make them one after the other', async () => {
  const source = await slowSource();
  const setup = await openSetup({ sourceUrl: source.url });
  const runs = [
    await start(setup, { ...NIGHT, force: true }),
    await start(setup, { ...NIGHT, force: true }),
    await start(setup, { ...NIGHT, force: true }),
  ];
  await setup.work(3);
  for (const run of runs) expect(await ended(setup, run)).toMatchObject({ state: 'completed' });
  expect(source).toMatchObject({ atOnce: 1, requests: 3 * REQUESTS });
});

test('a backfill leaves out what another has loaded since it was planned, unless it requests everything again', async () => {
  const setup = await openSetup();
  const longer = { ...NIGHT, from: '2025-09-05' };
  const first = await start(setup, NIGHT);
  const second = await start(setup, longer);
  const forced = await start(setup, { ...NIGHT, force: true });
  await setup.db.pool.query("update etl.runs set state = 'paused' where id = any($1)", [[second, forced]]);
  await setup.work();
  expect(await ended(setup, first)).toMatchObject({ state: 'completed', requests: REQUESTS });
  // The worker has taken the jobs of the paused runs out of the queue.
  await queueEmpty(setup);
  await resumeRun(setup, second);
  await resumeRun(setup, forced);
  // The trading day that only it requests, and the range that begins with it.
  expect(await ended(setup, second)).toMatchObject({ state: 'completed', requests: 2 });
  expect(await ended(setup, forced)).toMatchObject({ state: 'completed', requests: REQUESTS });
  const { rows } = await setup.db.pool.query(
    "select distinct error from etl.windows where run_id = $1 and state = 'skipped'",
    [second],
  );
  expect(rows).toEqual([{ error: 'covered by now, or requested by a later night' }]);
});
