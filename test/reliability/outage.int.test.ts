import { type AddressInfo, createServer } from 'node:net';
import { describe, expect } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { createLog } from '../../src/core/log.ts';
import { computeCallLimit, createSourceClock } from '../../src/jobs/policy/quota.ts';
import { applyFailure } from '../../src/jobs/worker/apply-failure.ts';
import { manualClock } from '../sandbox/support.ts';
import { runCli, unwrapped } from '../support/cli.ts';
import { startServer } from '../support/http-server.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebhook } from '../support/webhook.ts';
import { at, whenLimited } from './hours-support.ts';
import { openSetup, start, test, windowsOf } from './support.ts';

const PRICES = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
const FORTNIGHT = { ...PRICES, from: '2025-08-28', to: '2025-09-11' };

describe.each(mostly('postgres'))('a source that is down for three minutes (queue on %s)', (backend) => {
  test('gets a call each half minute, costs no attempt, stands first everywhere; then everything is loaded', async () => {
    const clock = manualClock(at('22:10:00'));
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
    const state = { isDown: false, calls: 0 };
    const sourceUrl = await startServer(async (request, response) => {
      if (state.isDown) {
        state.calls += 1;
        response.statusCode = 503;
        return response.end();
      }
      const { body, headers } = await fetch(new URL(request.url ?? '', sandbox.url)).then(async (one) => ({
        body: await one.text(),
        headers: one.headers,
      }));
      // After the first response.
      state.isDown = sandbox.stats().requests === 1;
      response.setHeader('content-type', headers.get('content-type') ?? '').end(body);
    });
    const webhook = await startWebhook();
    const setup = await openSetup({
      backend,
      clock,
      sourceUrl,
      settings: { EOD_ALERT_WEBHOOK: webhook.url, EOD_CONCURRENCY: '2', EOD_ATTEMPTS: '7' },
    });
    const runId = await start(setup, { ...PRICES, from: '2025-07-28', to: '2025-09-11' });
    await setup.work();
    await waitFor(() => state.calls >= 5);
    await whenLimited(setup);
    // Five in a row show it, and another one may have been under way.
    const opening = state.calls;
    expect(opening).toBeLessThanOrEqual(5 + 1);
    for (let tries = 1; tries <= 6; tries++) {
      clock.moveTo(at('22:10:00') + tries * 30_000 - 1);
      await setup.work();
      await whenLimited(setup);
      expect(state.calls).toBe(opening + tries - 1);
      clock.moveTo(at('22:10:00') + tries * 30_000);
      await setup.work();
      await waitFor(() => state.calls === opening + tries);
      await whenLimited(setup);
    }
    const cause = 'the source does not respond: the source responded with HTTP status 503';
    const since = '2025-09-12 22:10:00';
    const cwd = temporaryFolder();
    const status = await runCli(['status'], { env: setup.environment, cwd });
    expect(unwrapped(status.stdout).split('\n')[0]).toMatch(
      new RegExp(`^${cause}.*since ${since}.*run ${runId}`),
    );
    const { url } = await serve(setup, ['web']);
    const page = (await (await fetch(url)).text()).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    expect(page.toLowerCase()).toContain(cause.toLowerCase());
    expect(page).toContain(`Since ${since.slice(0, 16)}`);
    expect(webhook.heard.map(({ kind, message }) => [kind, message])).toEqual([
      [
        'source_down',
        `the source does not respond since ${since}: the source responded with HTTP status 503; it is tried every half minute`,
      ],
    ]);
    state.isDown = false;
    clock.moveTo(at('22:13:30'));
    await setup.work();
    const report = await ended(setup, runId);
    expect(report).toMatchObject({ state: 'completed', windows: { total: 32, loaded: 32 } });
    expect(sandbox.stats().requests).toBe(32);
    const { rows } = await setup.db.pool.query(
      'select sum(failed_attempts)::int as counted from etl.windows',
    );
    // Until it is known to be down.
    expect(rows[0].counted).toBeLessThanOrEqual(4);
    expect((await setup.db.pool.query('select from etl.source_state')).rowCount).toBe(0);
  });
});

test('a source that is down for longer than the run waits fails what is left of it after a call', async () => {
  let calls = 0;
  const sourceUrl = await startServer((_request, response) => {
    calls += 1;
    response.statusCode = 503;
    response.end();
  });
  // A backfill waits a sixtieth of this.
  const setup = await openSetup({
    sourceUrl,
    settings: { EOD_OUTAGE_PATIENCE_MS: '1000', EOD_ATTEMPTS: '9' },
  });
  const operations = [...FORTNIGHT.operations, 'GetSeriesChange'];
  const report = await setup.run({ ...FORTNIGHT, operations });
  expect(report).toMatchObject({ state: 'failed', windows: { open: 0, loaded: 0 } });
  expect(report.windows.failed).toBe(report.windows.total);
  expect(report.windows.total).toBeGreaterThan(11);
  expect(calls).toBe(5);
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
      job: { runId, windowId: window.id },
      window: null,
      callLimit: computeCallLimit(setup.config, setup.clock, createSourceClock(setup)),
      error: new PipelineError('the source is down', { kind: 'network' }),
      action: { act: 'end', state: 'failed', scope: 'window' },
    },
  );
  const { operation, exchange, from, to } = window;
  expect(JSON.parse(written.split('\n')[0] ?? '')).toMatchObject({ operation, exchange, from, to });
  expect(await windowsOf(setup, runId)).toMatchObject([{ state: 'failed', requests: 0 }]);
});
