import { describe, expect } from 'vitest';
import { manualClock } from '../sandbox/support.ts';
import { runCli, unwrapped } from '../support/cli.ts';
import { startServer } from '../support/http-server.ts';
import { backends, ended } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebhook } from '../support/webhook.ts';
import { at, whenLimited } from './hours-support.ts';
import { openSetup, start, tally, test, windowsOf } from './support.ts';

const FORTNIGHT = {
  operations: ['GetBhavCopyCM'],
  exchanges: ['NSE'],
  from: '2025-08-28',
  to: '2025-09-11',
};

describe.each(backends)('a source that is down for three minutes (queue on %s)', (backend) => {
  test('gets a call each half minute, costs no attempt, is named first everywhere; then everything is loaded', async () => {
    const clock = manualClock(at('22:10:00'));
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
    const state = { isDown: false, calls: 0 };
    const sourceUrl = await startServer(async (request, response) => {
      if (state.isDown) {
        state.calls += 1;
        response.statusCode = 503;
        return response.end();
      }
      const { body, headers } = await fetch(new URL(request.url ?? '', sandbox.url)).then(
        async (response) => ({
          body: await response.text(),
          headers: response.headers,
        }),
      );
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
    const runId = await start(setup, { ...FORTNIGHT, from: '2025-07-28', to: '2025-09-11' });
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
    expect(webhook.alerts.map(({ kind, message }) => [kind, message])).toEqual([
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
    // Only failures from before the source was known to be down count.
    expect(rows[0].counted).toBeLessThanOrEqual(4);
    expect((await setup.db.pool.query('select from etl.source_state')).rowCount).toBe(0);
  });
});

describe('a source that is down', () => {
  test('for one operation only fails no window of another', async () => {
    const setup = await openSetup({
      // A backfill has a sixtieth: on a slow machine, five failures in a row may take longer than a second.
      settings: { EOD_OUTAGE_PATIENCE_MS: '7200000', EOD_ATTEMPTS: '2' },
      behaviour: { faults: [{ kind: 'status', value: '503', operation: 'GetCircuitBreakers' }] },
    });
    const operations = ['GetCircuitBreakers', 'GetBhavCopyCM'];
    const report = await setup.run({ ...FORTNIGHT, from: '2025-07-28', operations });
    const ends = (await windowsOf(setup, report.runId)).map(
      ({ operation, state }) => `${operation} ${state}`,
    );
    expect(tally(ends)).toEqual({ 'GetCircuitBreakers failed': 32, 'GetBhavCopyCM loaded': 32 });
    // Responses of the other operation between them show that the source is up: each window has its two attempts.
    expect(setup.sandbox.stats().byOperation.GetCircuitBreakers).toBeLessThan(2 * 32 + 20);
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
