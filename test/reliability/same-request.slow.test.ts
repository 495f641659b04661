import { expect } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { releaseWindow, splitWindow } from '../../src/state/windows/windows.ts';
import { ended } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { NIGHT, REQUESTS, slowSource } from './same-request-support.ts';
import { openSetup, type Setup, start, test, windowsOf } from './support.ts';

test('a night that begins while another is under way leaves to that one what it is requesting', async () => {
  const source = await slowSource();
  // Windows that the first night loaded before the second is planned would be requested again.
  let respond = () => {};
  source.mayRespond = new Promise((resolve) => {
    respond = resolve;
  });
  const setup = await openSetup({ sourceUrl: source.url, settings: { EOD_CONCURRENCY: '2' } });
  const first = await start(setup, { ...NIGHT, tick: 'first' });
  await setup.work(2);
  await waitFor(async () => source.requests > 0, { what: 'the first request', everyMs: 10 });
  const second = await start(setup, { ...NIGHT, tick: 'second' });
  respond();
  for (const run of [first, second]) expect(await ended(setup, run)).toMatchObject({ state: 'completed' });
  expect(source).toMatchObject({ atOnce: 1, requests: REQUESTS });
});

test.each([
  ['waits when the later one is planned', 'pending', async () => {}],
  [
    'is worked on then, and put back',
    'running',
    async ({ db }: Setup, run: number) => {
      for (const { id } of await windowsOf({ db }, run))
        await releaseWindow(db.drizzle, id, null, { act: 'postpone' });
    },
  ],
  [
    'is split then',
    'running',
    async ({ db }: Setup, run: number) => {
      const range = (await windowsOf({ db }, run)).find(({ from, to }) => from !== to);
      const pieces = ['08', '09', '10', '11', '12'].map((day) => `2025-09-${day}`);
      await splitWindow(
        db.drizzle,
        range?.id ?? 0,
        pieces.map((day) => ({ from: day, to: day })),
      );
    },
  ],
  [
    'has failed then, and is resumed',
    'failed',
    async (setup: Setup, run: number) => {
      await setup.db.pool.query("update etl.runs set state = 'failed' where id = $1", [run]);
      await resumeRun(setup, run);
    },
  ],
])('a window of an older night that %s is left to the later night', async (_, state, reopen) => {
  const setup = await openSetup();
  // Of changes of series it is not known whether more will be published.
  const older = await start(setup, { ...NIGHT, tick: 'older' });
  await setup.db.pool.query('update etl.windows set state = $2 where run_id = $1', [older, state]);
  const later = await start(setup, { ...NIGHT, tick: 'later' });
  await reopen(setup, older);
  await setup.work(3);
  expect(await ended(setup, later)).toMatchObject({ state: 'completed', requests: REQUESTS });
  expect(await ended(setup, older)).toMatchObject({ state: 'completed', requests: 0 });
  expect(Object.values(setup.sandbox.stats().byOperation).reduce((sum, calls) => sum + calls, 0)).toBe(
    REQUESTS,
  );
  const { rows } = await setup.db.pool.query('select sum(calls)::int as calls from etl.call_budget');
  expect(rows).toEqual([{ calls: REQUESTS }]);
});

test('a run that is paused while a call of it is lost keeps nobody from requesting the same', async () => {
  const setup = await openSetup();
  const paused = await start(setup, NIGHT);
  await setup.db.pool.query(
    "update etl.windows set state = 'running', requests = 1, attempts = 1 where run_id = $1",
    [paused],
  );
  await setup.db.pool.query("update etl.runs set state = 'paused' where id = $1", [paused]);
  expect(await setup.run(NIGHT)).toMatchObject({ state: 'completed', requests: REQUESTS });
});
