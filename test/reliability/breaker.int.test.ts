import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { createLog } from '../../src/core/log.ts';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { applyFailure } from '../../src/jobs/worker/apply-failure.ts';
import { createBreaker } from '../../src/jobs/worker/breaker.ts';
import { callLimitOf, createSourceClock } from '../../src/jobs/worker/quota.ts';
import { manualClock } from '../sandbox/support.ts';
import { ended } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { waitFor } from '../support/wait-for.ts';
import { clockFrom, coverageRows, EVENING, openSetup, start, tally, test, windowsOf } from './support.ts';

const ASKED = { operation: 'GetBhavCopyCM', exchange: 'NSE' };

/** A breaker after so many calls that failed, a second apart. */
function breakerAfter(failures: number) {
  const clock = manualClock(10_000);
  const breaker = createBreaker(clock);
  for (let each = 0; each < failures; each++) {
    clock.moveTo(clock.now() + 1_000);
    breaker.failed(ASKED);
  }
  return { breaker, clock };
}

describe('the circuit breaker', () => {
  test('opens after five failures in a row, and a success starts the count anew', () => {
    const { breaker } = breakerAfter(4);
    breaker.succeeded();
    for (let each = 0; each < 4; each++) breaker.failed(ASKED);
    expect(breaker.outage()).toBeNull();
    breaker.failed(ASKED);
    expect(breaker.outage()).toMatchObject({ downMs: 0 });
    breaker.succeeded();
    expect(breaker.outage()).toBeNull();
  });

  test('tells for how long, since when nobody tried, when to try, and whether somebody does', () => {
    const { breaker, clock } = breakerAfter(5);
    clock.moveTo(clock.now() + 400);
    const open = { downMs: 4_400, sinceFailureMs: 400, waitMs: 600, probing: false };
    expect(breaker.outage()).toMatchObject(open);
    breaker.beginProbe();
    expect(breaker.outage()).toMatchObject({ ...open, probing: true });
    breaker.abandoned();
    expect(breaker.outage()).toMatchObject(open);
    breaker.beginProbe();
    breaker.failed(ASKED);
    expect(breaker.outage()).toMatchObject({
      downMs: 4_400,
      sinceFailureMs: 0,
      waitMs: 2_000,
      probing: false,
    });
    clock.moveTo(clock.now() + 3_000);
    expect(breaker.outage()).toMatchObject({ waitMs: 0 });
  });

  test('tells what it has tried since it opened, and waits no longer after the first call for something else', () => {
    const { breaker } = breakerAfter(5);
    const other = { ...ASKED, exchange: 'BSE' };
    const tried = () => [ASKED, other].map((asked) => breaker.outage()?.hasTried(asked));
    expect(tried()).toEqual([true, false]);
    breaker.beginProbe();
    breaker.failed(other);
    expect(tried()).toEqual([true, true]);
    expect(breaker.outage()).toMatchObject({ waitMs: 1_000 });
    breaker.beginProbe();
    breaker.failed(other);
    expect(breaker.outage()).toMatchObject({ waitMs: 2_000 });
    breaker.succeeded();
    for (let each = 0; each < 5; each++) breaker.failed(ASKED);
    expect(tried()).toEqual([true, false]);
  });

  test('calls that were under way when it opened do not make the pause longer', () => {
    const { breaker } = breakerAfter(9);
    expect(breaker.outage()).toMatchObject({ waitMs: 1_000 });
  });
});

/** A door in front of a port that lets nobody in until it is opened. */
async function door(port: number) {
  const sockets = new Set<Socket>();
  const state = { open: false, refused: 0 };
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (!state.open) {
      state.refused += 1;
      socket.resetAndDestroy();
      return;
    }
    const inner = connect(port, '127.0.0.1').on('error', () => undefined);
    for (const one of [socket, inner]) sockets.add(one);
    socket.pipe(inner).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  return { state, url };
}

const FORTNIGHT = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'], from: '2025-08-28', to: '2025-09-11' };

describe('a source that is down', () => {
  test('is tried seldom while it is, uses up no attempts, and everything is loaded once it is back', async () => {
    const sandbox = await openSandbox({ clock: clockFrom(EVENING), instrumentsPerExchange: 40 });
    const { state, url } = await door(sandbox.port);
    // The first window tries the key alone, so all five failures that open the circuit may be its own.
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_ATTEMPTS: '1' } });
    const runId = await start(setup, FORTNIGHT);
    const begun = Date.now();
    await setup.work(1);
    // Five failures in a row, then one try after a second.
    await waitFor(() => state.refused >= 6, { timeoutMs: 20_000 });
    const seconds = (Date.now() - begun) / 1000;
    expect(state.refused).toBeLessThanOrEqual(5 + 4 + Math.ceil(Math.log2(seconds + 1)));
    state.open = true;
    const report = await ended(setup, runId);
    expect(report).toMatchObject({ state: 'completed', windows: { total: 11, loaded: 11 } });
    expect(sandbox.stats().requests).toBe(11);
    expect(state.refused).toBeLessThanOrEqual(10);
  });

  test('as far as one operation goes fails no window of another, though that is asked last', async () => {
    const setup = await openSetup({
      settings: { EOD_OUTAGE_PATIENCE_MS: '60000', EOD_ATTEMPTS: '2' },
      behaviour: { faults: [{ kind: 'status', value: '503', operation: 'GetCircuitBreakers' }] },
    });
    const operations = ['GetCircuitBreakers', 'GetBhavCopyCM'];
    const report = await setup.run({ ...FORTNIGHT, from: '2025-07-28', operations });
    const ends = (await windowsOf(setup, report.runId)).map(
      ({ operation, state }) => `${operation} ${state}`,
    );
    expect(tally(ends)).toEqual({ 'GetCircuitBreakers failed': 32, 'GetBhavCopyCM loaded': 32 });
    expect(setup.sandbox.stats().byOperation.GetCircuitBreakers).toBeLessThan(32 + 20);
  });

  test('for longer than EOD_OUTAGE_PATIENCE_MS: the run fails in bounded time, with few calls', async () => {
    const { state, url } = await door(0);
    // A backfill waits a sixtieth of this.
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    const begun = Date.now();
    const report = await setup.run(FORTNIGHT);
    expect(Date.now() - begun).toBeLessThan(15_000);
    expect(report).toMatchObject({ state: 'failed', windows: { total: 11, failed: 11 } });
    expect(state.refused).toBeLessThanOrEqual(10);
    const windows = await windowsOf(setup, report.runId);
    expect(
      windows.filter(({ error }) =>
        error?.includes('the source has answered with errors, or not at all, for'),
      ),
    ).not.toHaveLength(0);
    expect(tally((await coverageRows(setup)).map((row) => row.state))).toEqual({ failed: 11 });
  });

  test('is found to be back by the next run: one call tries it, and every window waits for that call', async () => {
    const sandbox = await openSandbox({
      clock: clockFrom(EVENING),
      instrumentsPerExchange: 40,
      behaviour: { delayMs: 200 },
    });
    const { state, url } = await door(sandbox.port);
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    expect(await setup.run({ ...FORTNIGHT, from: '2025-09-10' })).toMatchObject({ state: 'failed' });
    const whileDown = state.refused;
    state.open = true;
    const weeks = { ...FORTNIGHT, from: '2025-07-28' };
    const report = await ended(setup, await start(setup, weeks));
    expect(report).toMatchObject({ state: 'completed', windows: { total: 32, loaded: 32, failed: 0 } });
    expect([sandbox.stats().requests, state.refused]).toEqual([32, whileDown]);
  });

  test('is tried once more for each run before its windows are given up, and for a run that is resumed', async () => {
    const { state, url } = await door(0);
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    const report = await setup.run(FORTNIGHT);
    const tried = [state.refused];
    const other = await ended(setup, await start(setup, { ...FORTNIGHT, exchanges: ['BSE'] }));
    tried.push(state.refused);
    await resumeRun(setup, report.runId);
    const resumed = await ended(setup, report.runId);
    tried.push(state.refused);
    for (const one of [report, other, resumed]) {
      expect(one).toMatchObject({ state: 'failed', windows: { failed: 11 } });
    }
    for (const [at, calls] of tried.entries()) {
      const before = tried[at - 1] ?? 0;
      expect(calls).toBeGreaterThan(before + 1);
      expect(calls).toBeLessThanOrEqual(before + 10);
    }
  });

  test('that hangs is found out at a single day, before every long window was split', async () => {
    const setup = await openSetup({
      settings: { EOD_TIMEOUT_MS: '150', EOD_OUTAGE_PATIENCE_MS: '1000', EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'hang' }] },
    });
    // Thirteen windows of 30 days: 390 days, each of which would time out.
    const report = await setup.run({
      operations: ['GetTotalTradeHighlights'],
      from: '2024-08-19',
      to: '2025-09-11',
    });
    expect(report.state).toBe('failed');
    expect(setup.sandbox.stats().requests).toBeLessThan(40);
  });
});

test('a window that is given up before it is asked is named in the log with what it asks', async () => {
  const setup = await openSetup();
  const runId = await start(setup, { ...FORTNIGHT, to: FORTNIGHT.from });
  const [window] = await windowsOf(setup, runId);
  if (window === undefined) throw new Error('no window was planned');
  let written = '';
  const log = createLog({ ...setup.config, EOD_LOG_LEVEL: 'error' }, { write: (text) => (written += text) });
  await applyFailure(
    { ...setup, log },
    {
      job: { database: setup.queues.databaseId, runId, windowId: window.id },
      window: null,
      callLimit: callLimitOf(setup.config, setup.clock, createSourceClock(setup)),
      error: new PipelineError('the source is down', { kind: 'network' }),
      action: { act: 'end', state: 'failed', scope: 'window' },
    },
  );
  const { operation, exchange, from, to } = window;
  expect(JSON.parse(written.split('\n')[0] ?? '')).toMatchObject({ operation, exchange, from, to });
  expect(await windowsOf(setup, runId)).toMatchObject([{ state: 'failed', requests: 0 }]);
});
