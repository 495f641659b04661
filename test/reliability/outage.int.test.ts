import { type AddressInfo, createServer } from 'node:net';
import { describe, expect } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { createLog } from '../../src/core/log.ts';
import { computeCallLimit, createSourceClock } from '../../src/jobs/policy/quota.ts';
import { applyFailure } from '../../src/jobs/worker/apply-failure.ts';
import { startServer } from '../support/http-server.ts';
import { ended } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { clockFrom, EVENING, openSetup, start, tally, test, windowsOf } from './support.ts';

const PRICES = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
const FORTNIGHT = { ...PRICES, from: '2025-08-28', to: '2025-09-11' };

test('if the source is down for longer than the run waits, the rest of the run fails without a call for each window', async () => {
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
  const report = await setup.run(FORTNIGHT);
  expect(report).toMatchObject({ state: 'failed', windows: { total: 11, failed: 11 } });
  expect(calls).toBe(5);
});

describe.each([
  { failing: { operation: 'GetCircuitBreakers' }, others: 'loaded', cause: 'only one operation fails' },
  { failing: {}, others: 'failed', cause: 'the source is down' },
])(
  'where the first operation got no response for longer than the run waits',
  ({ failing, others, cause }) => {
    test(`a call of the next one shows that ${cause}`, async () => {
      const evening = clockFrom(EVENING);
      let ahead = 0;
      const setup = await openSetup({
        clock: { now: () => evening.now() + ahead },
        settings: { EOD_OUTAGE_PATIENCE_MS: '1000', EOD_ATTEMPTS: '9' },
        behaviour: { faults: [{ kind: 'status', value: '503', ...failing }] },
      });
      const operations = ['GetCircuitBreakers', 'GetBhavCopyCM'];
      const runId = await start(setup, { ...FORTNIGHT, operations });
      await setup.work();
      const isFailed = ({ state }: { readonly state: string }) => state === 'failed';
      await waitFor(async () => (await windowsOf(setup, runId)).some(isFailed));
      // Half a minute later, a worker that begins now.
      ahead = 30_000;
      await setup.work();
      const report = await ended(setup, runId);
      const ends = (await windowsOf(setup, runId)).map(({ operation, state }) => `${operation} ${state}`);
      expect(report.state).toBe('failed');
      expect(tally(ends)).toEqual({ 'GetCircuitBreakers failed': 11, [`GetBhavCopyCM ${others}`]: 11 });
      expect(setup.sandbox.stats().byOperation.GetCircuitBreakers).toBe(5);
      expect(setup.sandbox.stats().byOperation.GetBhavCopyCM).toBe(others === 'loaded' ? 11 : 1);
    });
  },
);

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
