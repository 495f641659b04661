import { type AddressInfo, createServer } from 'node:net';
import { describe, expect } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { createLog } from '../../src/core/log.ts';
import { callLimitOf, createSourceClock } from '../../src/jobs/policy/quota.ts';
import { applyFailure } from '../../src/jobs/worker/apply-failure.ts';
import { createBreaker } from '../../src/jobs/worker/breaker.ts';
import { manualClock } from '../sandbox/support.ts';
import { ended } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { waitFor } from '../support/wait-for.ts';
import { door, FORTNIGHT } from './breaker-support.ts';
import { clockFrom, EVENING, openSetup, start, test, windowsOf } from './support.ts';

const REQUESTED = { operation: 'GetBhavCopyCM', exchange: 'NSE' };

/** A breaker after so many calls that failed, a second apart. */
function breakerAfter(failures: number) {
  const clock = manualClock(10_000);
  const breaker = createBreaker(clock);
  for (let each = 0; each < failures; each++) {
    clock.moveTo(clock.now() + 1_000);
    breaker.failed(REQUESTED, 'no response');
  }
  return { breaker, clock };
}

describe('the circuit breaker', () => {
  test('opens after five failures in a row, and a success starts the count anew', () => {
    const { breaker } = breakerAfter(4);
    breaker.succeeded();
    for (let each = 0; each < 4; each++) breaker.failed(REQUESTED, 'no response');
    expect(breaker.outage()).toBeNull();
    breaker.failed(REQUESTED, 'no response');
    expect(breaker.outage()).toMatchObject({ downMs: 0 });
    breaker.succeeded();
    expect(breaker.outage()).toBeNull();
  });

  test('shows for how long, since when nobody tried, when to try, and whether somebody does', () => {
    const { breaker, clock } = breakerAfter(5);
    clock.moveTo(clock.now() + 400);
    const open = { downMs: 4_400, sinceFailureMs: 400, waitMs: 600, probing: false };
    expect(breaker.outage()).toMatchObject(open);
    breaker.beginProbe();
    expect(breaker.outage()).toMatchObject({ ...open, probing: true });
    breaker.abandoned();
    expect(breaker.outage()).toMatchObject(open);
    breaker.beginProbe();
    breaker.failed(REQUESTED, 'no response');
    expect(breaker.outage()).toMatchObject({
      downMs: 4_400,
      sinceFailureMs: 0,
      waitMs: 2_000,
      probing: false,
    });
    clock.moveTo(clock.now() + 3_000);
    expect(breaker.outage()).toMatchObject({ waitMs: 0 });
  });

  test('shows what it has tried since it opened, and waits no longer after the first call for something else', () => {
    const { breaker } = breakerAfter(5);
    const other = { ...REQUESTED, exchange: 'BSE' };
    const tried = () => [REQUESTED, other].map((requested) => breaker.outage()?.hasTried(requested));
    expect(tried()).toEqual([true, false]);
    breaker.beginProbe();
    breaker.failed(other, 'no response');
    expect(tried()).toEqual([true, true]);
    expect(breaker.outage()).toMatchObject({ waitMs: 1_000 });
    breaker.beginProbe();
    breaker.failed(other, 'no response');
    expect(breaker.outage()).toMatchObject({ waitMs: 2_000 });
    breaker.succeeded();
    for (let each = 0; each < 5; each++) breaker.failed(REQUESTED, 'no response');
    expect(tried()).toEqual([true, false]);
  });

  test('calls that were under way when it opened do not make the pause longer', () => {
    const { breaker } = breakerAfter(9);
    expect(breaker.outage()).toMatchObject({ waitMs: 1_000 });
  });
});

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
});

test('an address that leads to a server without TLS is no outage: a few calls say so, and the run ends', async () => {
  let calls = 0;
  const server = createServer((socket) => {
    calls += 1;
    socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const setup = await openSetup({ sourceUrl: `https://127.0.0.1:${port}` });
  const runId = await start(setup, FORTNIGHT);
  await setup.work(1);
  const report = await ended(setup, runId);
  server.close();
  expect(report).toMatchObject({ state: 'failed', windows: { total: 11, failed: 11 } });
  expect(report.failures[0]?.error).toContain('does not speak TLS: correct EOD_BASE_URL');
  // Three of each window in work, of which there is one until a call has succeeded.
  expect(calls).toBeLessThanOrEqual(3 * setup.config.EOD_CONCURRENCY);
});

test('a window that is given up before it is requested is named in the log with what it requests', async () => {
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
