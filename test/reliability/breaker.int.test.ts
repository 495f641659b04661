import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createBreaker } from '../../src/jobs/worker/breaker.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { manualClock } from '../sandbox/support.ts';
import { ended } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { clockFrom, coverageRows, EVENING, openStage, start, tally, windowsOf } from './support.ts';

describe('the circuit breaker', () => {
  test('stays closed below its threshold, and a success starts the count anew', () => {
    const breaker = createBreaker(manualClock(0), 3);
    for (const _ of [1, 2, 3]) {
      breaker.failed();
      breaker.failed();
      expect(breaker.admit()).toEqual({ admitted: true });
      breaker.succeeded();
    }
    expect(breaker.outage()).toBeNull();
  });

  test('opens, tries with one call at a time, waits twice as long after each, closes on success', () => {
    const clock = manualClock(10_000);
    const breaker = createBreaker(clock, 2);
    breaker.failed();
    clock.moveTo(12_000);
    breaker.failed();
    expect(breaker.admit()).toEqual({ admitted: false, waitMs: 1_000, downMs: 2_000 });
    clock.moveTo(13_000);
    expect(breaker.admit()).toEqual({ admitted: true });
    // While that one call is under way nobody else is let through.
    expect(breaker.admit()).toMatchObject({ admitted: false, downMs: 3_000 });
    breaker.failed();
    expect(breaker.admit()).toMatchObject({ admitted: false, waitMs: 2_000 });
    expect(breaker.outage()).toEqual({ downMs: 3_000, waitMs: 2_000 });
    clock.moveTo(15_000);
    expect(breaker.admit()).toEqual({ admitted: true });
    breaker.succeeded();
    expect([breaker.admit(), breaker.admit(), breaker.outage()]).toEqual([
      { admitted: true },
      { admitted: true },
      null,
    ]);
  });

  test('never waits longer than half a minute, and starts small again after a recovery', () => {
    const clock = manualClock(0);
    const breaker = createBreaker(clock, 1);
    const pauses: number[] = [];
    for (let each = 0; each < 8; each++) {
      breaker.failed();
      const waitMs = breaker.outage()?.waitMs ?? 0;
      pauses.push(waitMs);
      clock.moveTo(clock.now() + waitMs);
      expect(breaker.admit().admitted).toBe(true);
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    breaker.succeeded();
    breaker.failed();
    expect(breaker.outage()?.waitMs).toBe(1_000);
  });

  test('a trial that told nothing lets the next one try at once', () => {
    const clock = manualClock(0);
    const breaker = createBreaker(clock, 1);
    breaker.failed();
    clock.moveTo(1_000);
    expect(breaker.admit().admitted).toBe(true);
    breaker.abandoned();
    expect(breaker.admit().admitted).toBe(true);
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
    const sandbox = await startSandbox({ clock: clockFrom(EVENING), instrumentsPerExchange: 40 });
    onTestFinished(() => sandbox.close());
    const { state, url } = await door(sandbox.port);
    const stage = await openStage({ sourceUrl: url, settings: { EOD_ATTEMPTS: '3' } });
    const runId = await start(stage, FORTNIGHT);
    const begun = Date.now();
    await stage.work(1);
    // Five failures in a row, then one try after a second.
    await waitFor(() => state.refused >= 6, { timeoutMs: 20_000 });
    const seconds = (Date.now() - begun) / 1000;
    expect(state.refused).toBeLessThanOrEqual(5 + 4 + Math.ceil(Math.log2(seconds + 1)));
    state.open = true;
    const report = await ended(stage, runId);
    expect(report).toMatchObject({ state: 'completed', windows: { total: 11, loaded: 11 } });
    expect(sandbox.stats().requests).toBe(11);
    expect(state.refused).toBeLessThanOrEqual(10);
  });

  test('for longer than EOD_OUTAGE_PATIENCE_MS: the run fails in bounded time, with few calls', async () => {
    const { state, url } = await door(0);
    // A backfill waits a sixtieth of this.
    const stage = await openStage({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '60000' } });
    const begun = Date.now();
    const report = await stage.run(FORTNIGHT);
    expect(Date.now() - begun).toBeLessThan(15_000);
    expect(report).toMatchObject({ state: 'failed', windows: { total: 11, failed: 11 } });
    expect(state.refused).toBeLessThanOrEqual(10);
    const windows = await windowsOf(stage, report.runId);
    expect(
      windows.filter(({ error }) => error?.includes('the source has not answered for')),
    ).not.toHaveLength(0);
    expect(tally((await coverageRows(stage)).map((row) => row.state))).toEqual({ failed: 11 });
  });

  test('that hangs is found out at a single day, before every long window was split', async () => {
    const stage = await openStage({
      settings: { EOD_TIMEOUT_MS: '150', EOD_OUTAGE_PATIENCE_MS: '1000', EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'hang' }] },
    });
    // Thirteen windows of 30 days: 390 days, each of which would time out.
    const report = await stage.run({
      operations: ['GetTotalTradeHighlights'],
      from: '2024-08-19',
      to: '2025-09-11',
    });
    expect(report.state).toBe('failed');
    expect(stage.sandbox.stats().requests).toBeLessThan(40);
  });
});
