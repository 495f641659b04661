import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { releaseWindow, splitWindow } from '../../src/load/state/windows/windows.ts';
import { startServer } from '../support/http-server.ts';
import { ended, queueEmpty } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { waitFor } from '../support/wait-for.ts';
import { clockFrom, EVENING, openSetup, type Setup, start, test, windowsOf } from './support.ts';

const NIGHT = {
  from: '2025-09-08',
  to: '2025-09-12',
  operations: ['GetBhavCopyCM', 'GetSeriesChange'],
  exchanges: ['NSE'],
};
/** Five sessions, and one range of them. */
const QUESTIONS = 6;

/** A sandbox behind a server that takes its time, and what it was asked: in all, and the most of one question at once. */
async function slowSource() {
  const sandbox = await openSandbox({ clock: clockFrom(EVENING), instrumentsPerExchange: 5 });
  const underWay = new Map<string, number>();
  const asked = { url: '', requests: 0, atOnce: 0, mayAnswer: Promise.resolve() };
  asked.url = await startServer(async (request, response) => {
    const url = request.url ?? '';
    asked.requests += 1;
    const now = (underWay.get(url) ?? 0) + 1;
    underWay.set(url, now);
    asked.atOnce = Math.max(asked.atOnce, now);
    const answer = await fetch(new URL(url, sandbox.url));
    const body = await answer.text();
    await asked.mayAnswer;
    // Not waited for anything: calls take this long, so that two of one question would be under way at once.
    await sleep(300);
    underWay.set(url, (underWay.get(url) ?? 0) - 1);
    response.setHeader('content-type', answer.headers.get('content-type') ?? '');
    response.end(body);
  });
  return asked;
}

test('a night that begins while another is asked leaves what is under way to that one', async () => {
  const source = await slowSource();
  // What the first night has loaded before the second is planned, that one asks again.
  let answer = () => {};
  source.mayAnswer = new Promise((resolve) => {
    answer = resolve;
  });
  const setup = await openSetup({ sourceUrl: source.url, settings: { EOD_CONCURRENCY: '2' } });
  const first = await start(setup, { ...NIGHT, tick: 'first' });
  await setup.work(2);
  await waitFor(async () => source.requests > 0, { what: 'the first request', everyMs: 10 });
  const second = await start(setup, { ...NIGHT, tick: 'second' });
  answer();
  for (const run of [first, second]) expect(await ended(setup, run)).toMatchObject({ state: 'completed' });
  expect(source).toMatchObject({ atOnce: 1, requests: QUESTIONS });
});

test.each([
  ['waits when the later one is planned', 'pending', async () => {}],
  [
    'is worked on then, and put back',
    'running',
    async ({ db }: Setup, run: number) => {
      for (const { id } of await windowsOf({ db }, run)) await releaseWindow(db.drizzle, id, null);
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
])('what an older night asks is left to a later one: it %s', async (_, state, reopen) => {
  const setup = await openSetup();
  // Of changes of series it is not known whether more will be published.
  const older = await start(setup, { ...NIGHT, tick: 'older' });
  await setup.db.pool.query('update etl.windows set state = $2 where run_id = $1', [older, state]);
  const later = await start(setup, { ...NIGHT, tick: 'later' });
  await reopen(setup, older);
  await setup.work(3);
  expect(await ended(setup, later)).toMatchObject({ state: 'completed', requests: QUESTIONS });
  expect(await ended(setup, older)).toMatchObject({ state: 'completed', requests: 0 });
  expect(Object.values(setup.sandbox.stats().byOperation).reduce((sum, calls) => sum + calls, 0)).toBe(
    QUESTIONS,
  );
  const { rows } = await setup.db.pool.query('select sum(calls)::int as calls from etl.call_budget');
  expect(rows).toEqual([{ calls: QUESTIONS }]);
});

test('backfills that ask the same ask it one after the other', async () => {
  const source = await slowSource();
  const setup = await openSetup({ sourceUrl: source.url });
  const runs = [
    await start(setup, { ...NIGHT, force: true }),
    await start(setup, { ...NIGHT, force: true }),
    await start(setup, { ...NIGHT, force: true }),
  ];
  await setup.work(3);
  for (const run of runs) expect(await ended(setup, run)).toMatchObject({ state: 'completed' });
  expect(source).toMatchObject({ atOnce: 1, requests: 3 * QUESTIONS });
});

test('a backfill leaves out what another has loaded since it was planned, unless it asks again for all', async () => {
  const setup = await openSetup();
  const longer = { ...NIGHT, from: '2025-09-05' };
  const first = await start(setup, NIGHT);
  const second = await start(setup, longer);
  const forced = await start(setup, { ...NIGHT, force: true });
  await setup.db.pool.query("update etl.runs set state = 'paused' where id = any($1)", [[second, forced]]);
  await setup.work();
  expect(await ended(setup, first)).toMatchObject({ state: 'completed', requests: QUESTIONS });
  // The worker has taken out those of the paused runs.
  await queueEmpty(setup);
  await resumeRun(setup, second);
  await resumeRun(setup, forced);
  // The session that only it asks for, and the range that begins with it.
  expect(await ended(setup, second)).toMatchObject({ state: 'completed', requests: 2 });
  expect(await ended(setup, forced)).toMatchObject({ state: 'completed', requests: QUESTIONS });
  const { rows } = await setup.db.pool.query(
    "select distinct error from etl.windows where run_id = $1 and state = 'skipped'",
    [second],
  );
  expect(rows).toEqual([{ error: 'known by now, or asked for by a later night' }]);
});

test('a run that is paused while a call of it is lost keeps nobody from asking the same', async () => {
  const setup = await openSetup();
  const paused = await start(setup, NIGHT);
  await setup.db.pool.query(
    "update etl.windows set state = 'running', requests = 1, attempts = 1 where run_id = $1",
    [paused],
  );
  await setup.db.pool.query("update etl.runs set state = 'paused' where id = $1", [paused]);
  expect(await setup.run(NIGHT)).toMatchObject({ state: 'completed', requests: QUESTIONS });
});
