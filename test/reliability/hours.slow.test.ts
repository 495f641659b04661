import { get } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createSettableClock, systemClock } from '../../src/core/clock.ts';
import { hourStart } from '../../src/jobs/policy/quota.ts';
import { pruneRuns } from '../../src/jobs/runs/prune-runs.ts';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { pauseRun } from '../../src/state/runs/runs.ts';
import { manualClock } from '../sandbox/support.ts';
import { runCli } from '../support/cli.ts';
import { startServer } from '../support/http-server.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { at, closedHours, LIMITED, limitedFor, QUARTER, whenLimited } from './hours-support.ts';
import { openSetup, type Setup, start, tally, windowsOf } from './support.ts';

async function stateTally(setup: Setup, runId: number) {
  return tally((await windowsOf(setup, runId)).map(({ state }) => state));
}

test.each(mostly('redis'))(
  'a limit that is raised takes effect when a worker starts (queue on %s)',
  async (backend) => {
    const clock = manualClock(at('22:10:00'));
    const settings = { EOD_CALLS_PER_HOUR: '8', EOD_NIGHTLY_RESERVE: '0' };
    const setup = await openSetup({ backend, clock, settings });
    const runId = await start(setup, QUARTER);
    const first = await startWorker(setup);
    await whenLimited(setup);
    await waitFor(async () => (await stateTally(setup, runId)).loaded === 8);
    // Workers that run on look again after a minute.
    expect(await limitedFor(setup)).toBeLessThanOrEqual(60_000);
    await first.stop();
    const raised = { ...setup, config: { ...setup.config, EOD_CALLS_PER_HOUR: 900 } };
    const second = await startWorker(raised);
    onTestFinished(() => second.stop());
    expect(await ended(setup, runId)).toMatchObject({ state: 'completed', windows: { loaded: 62 } });
  },
);

test('while only paused runs are open, the status does not say that anything waits for the next hour', async () => {
  const clock = manualClock(at('22:10:00'));
  const faults = [{ kind: 'diagnostic' as const, value: LIMITED }];
  const setup = await openSetup({ clock, settings: { EOD_CONCURRENCY: '1' }, behaviour: { faults } });
  const runId = await start(setup, QUARTER);
  await setup.work();
  await waitFor(async () => (await closedHours(setup)) === 1);
  await pauseRun(setup.db.drizzle, runId, 'a test');
  const env = { DATABASE_URL: setup.db.url, EOD_ACCESS_KEY: setup.config.EOD_ACCESS_KEY ?? '' };
  const { stdout } = await runCli(['status'], { cwd: temporaryFolder(), env });
  expect(stdout).toMatch(/^ +1 +backfill +paused/m);
  expect(stdout).toMatch(/^run 1: GetBhavCopyCM .*2nd call when the run is resumed/ms);
  expect(stdout).not.toMatch(/waiting|until|refuse| is due/i);
});

test.each([
  [-30, '23:00:05', '23:00:34'],
  [-180, '23:02:55', '23:03:04'],
  [180, '22:56:55', '22:57:04'],
])(
  "an hour begins when it does by the source's Date header (%i s ahead of ours)",
  async (ahead, before, after) => {
    const clock = manualClock(at('22:50:00'));
    const setup = await openSetup({
      clock,
      sourceClock: { now: () => clock.now() + ahead * 1_000 },
      settings: { EOD_CALLS_PER_HOUR: '8', EOD_NIGHTLY_RESERVE: '0', EOD_CONCURRENCY: '1' },
      behaviour: { callsPerHour: 8 },
    });
    const runId = await start(setup, { ...QUARTER, from: '2025-08-20' });
    await setup.work();
    await whenLimited(setup);
    expect(await stateTally(setup, runId)).toMatchObject({ loaded: 8, pending: 8 });
    // By the source's clock it is yet to turn.
    clock.moveTo(at(before));
    await setup.work();
    await whenLimited(setup);
    expect(setup.sandbox.stats().byDiagnostic).toEqual({});
    clock.moveTo(at(after));
    await setup.work();
    expect(await ended(setup, runId)).toMatchObject({ state: 'completed', requests: 16 });
    expect(setup.sandbox.stats().byDiagnostic).toEqual({});
  },
);

test.each([
  [30, ['23:00:05', '23:01:06']],
  [180, ['23:00:05', '23:01:06', '23:02:07', '23:03:08']],
])(
  'a refusal at the turn of the hour does not close it: a source %i s behind is requested again each minute',
  async (behind, looks) => {
    const clock = manualClock(at('22:50:00'));
    const sandbox = await openSandbox({
      clock: { now: () => clock.now() - behind * 1_000 },
      instrumentsPerExchange: 40,
      behaviour: { callsPerHour: 8 },
    });
    const sourceUrl = await startServer((request, response) => {
      response.sendDate = false;
      get(`${sandbox.url}${request.url}`, (upstream) => {
        const { date: _date, ...headers } = upstream.headers;
        response.writeHead(upstream.statusCode ?? 500, headers);
        upstream.pipe(response);
      });
    });
    const setup = await openSetup({
      clock,
      sourceUrl,
      settings: { EOD_CALLS_PER_HOUR: '8', EOD_NIGHTLY_RESERVE: '0', EOD_CONCURRENCY: '1' },
    });
    const runId = await start(setup, { ...QUARTER, from: '2025-08-11' });
    // One worker at a time: each has to find out on its own that the source is behind.
    let worker = await startWorker(setup);
    onTestFinished(() => worker.stop());
    const startAnother = async (time = '') => {
      await worker.stop();
      clock.moveTo(at(time));
      worker = await startWorker(setup);
    };
    await whenLimited(setup);
    const last = looks.length - 1;
    for (const [refused, time] of looks.slice(0, last).entries()) {
      await startAnother(time);
      await waitFor(() => sandbox.stats().byDiagnostic[LIMITED] === refused + 1);
      await whenLimited(setup);
      expect(await closedHours(setup)).toBe(0);
    }
    await startAnother(looks[last]);
    // The calls that were refused count in the hour they were meant for.
    await waitFor(async () => (await stateTally(setup, runId)).loaded === 16 - last);
    expect(sandbox.stats().byDiagnostic).toEqual({ [LIMITED]: last });
  },
);

/** A server that passes calls on to a sandbox, after it has done something about each. */
const proxyOf = (sandboxUrl: string, onCall: () => void, dateOf: (date: string) => string) =>
  startServer((request, response) => {
    onCall();
    get(`${sandboxUrl}${request.url}`, (upstream) => {
      const { date = '', ...headers } = upstream.headers;
      response.writeHead(upstream.statusCode ?? 500, { ...headers, date: dateOf(date) });
      upstream.pipe(response);
    });
  });

test.each(mostly('redis'))(
  'no hour is opened twice, though the clock of the machine leaps with each call and the source states any time (queue on %s)',
  async (backend) => {
    const HOUR = 3_600_000;
    const leaps = [HOUR, -HOUR, 1_800 * 24 * HOUR, 2 * HOUR, -3 * 24 * HOUR, 59 * 60_000];
    let calls = 0;
    let ahead = 0;
    const clock = createSettableClock({ now: () => Date.now() + ahead });
    const sandbox = await openSandbox({ clock: systemClock, instrumentsPerExchange: 40 });
    const sourceUrl = await proxyOf(
      sandbox.url,
      () => {
        ahead = leaps[calls++ % leaps.length] ?? 0;
      },
      (date) => new Date(Date.parse(date) + (calls % 2 === 0 ? 29 : -29) * 60_000).toUTCString(),
    );
    const settings = { EOD_CALLS_PER_HOUR: '5', EOD_NIGHTLY_RESERVE: '0', EOD_CONCURRENCY: '1' };
    const setup = await openSetup({ backend, clock, sourceUrl, settings });
    const hour = () => hourStart(Date.now(), setup.config.EOD_TIMEZONE);
    const first = hour();
    await start(setup, { ...QUARTER, from: '2025-08-20' });
    for (let restarts = 0; restarts < 3; restarts += 1) {
      const worker = await startWorker(setup);
      await whenLimited(setup);
      ahead = 365 * 24 * HOUR;
      await pruneRuns(setup);
      await worker.stop();
    }
    const hours = 1 + (hour() - first) / HOUR;
    expect(calls).toBeGreaterThanOrEqual(5);
    // Near the turn of the hour, the next one may be five minutes early by the source's time.
    const isNearTurn = hourStart(Date.now() + 300_000, setup.config.EOD_TIMEZONE) !== hour();
    expect(calls).toBeLessThanOrEqual(5 * (hours + (isNearTurn ? 1 : 0)));
  },
);

test('a resume by a person opens a closed hour, and all windows start when the source responds', async () => {
  const clock = manualClock(at('22:10:00'));
  const faults = [{ kind: 'diagnostic' as const, value: LIMITED, first: 1 }];
  const setup = await openSetup({ clock, settings: { EOD_CONCURRENCY: '1' }, behaviour: { faults } });
  const runId = await start(setup, QUARTER);
  await setup.work();
  await waitFor(async () => (await closedHours(setup)) === 1);
  await whenLimited(setup);
  expect(setup.sandbox.stats().requests).toBe(1);
  // The clock stands still: nothing but the resume opens the hour, and the queue would be limited for a minute.
  await resumeRun(setup, runId);
  const report = await ended(setup, runId, 20_000);
  expect(report).toMatchObject({ state: 'completed', requests: 63, windows: { loaded: 62 } });
});
