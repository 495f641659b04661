import { readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startServer } from '../support/http-server.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { accountsOf, coverageRows, openSetup, start, tally, windowsOf } from './support.ts';
import { DAY, expectRetried, FAULTS, USUAL_FAULTS } from './transport-support.ts';

test.each(FAULTS.filter(([name]) => !USUAL_FAULTS.includes(name)))(
  '%s is retried: a passing one does no harm, a lasting one fails its window',
  expectRetried,
);

/** A source of CSV of which every n-th response lacks its last line end. */
async function openWithoutLineEnds(every: number, settings: Readonly<Record<string, string>> = {}) {
  let target = '';
  let requests = 0;
  const sourceUrl = await startServer(async ({ url }, response) => {
    requests += 1;
    const body = await (await fetch(`${target}${url}`)).text();
    response.end(requests % every === 0 ? body.trimEnd() : body);
  });
  const setup = await openSetup({ sourceUrl, settings: { EOD_FORMAT: 'Csv', ...settings } });
  target = setup.sandbox.url;
  return setup;
}

test('a CSV without its last line end is incomplete where other responses of the operation have it', async () => {
  const days = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'], from: '2025-09-09' };
  const setup = await openWithoutLineEnds(3, { EOD_CONCURRENCY: '1', EOD_ATTEMPTS: '2' });
  // Nothing is known of the operation's responses yet; the third one is requested again, and is whole then.
  const report = await setup.run({ ...days, to: '2025-09-11' });
  expect(report).toMatchObject({ state: 'completed', requests: 4, windows: { loaded: 3 } });
  await accountsOf(setup, report);
});

test('a CSV without its last line end is whole where no response of the operation has it', async () => {
  const setup = await openWithoutLineEnds(1);
  const report = await setup.run({ ...DAY, from: '2025-09-09' });
  expect(report).toMatchObject({ state: 'completed', requests: 3, windows: { loaded: 3 } });
});

test('attempts are counted with the window: a queue that has lost its jobs does not begin anew', async () => {
  const setup = await openSetup({
    settings: { EOD_ATTEMPTS: '4' },
    behaviour: { faults: [{ kind: 'status', value: '503' }] },
  });
  const runId = await start(setup, DAY);
  await setup.db.pool.query('update etl.windows set attempts = 2, failed_attempts = 2');
  await setup.work();
  expect(await ended(setup, runId)).toMatchObject({ state: 'failed', requests: 2 });
});

describe.each(mostly('postgres'))('Retry-After (queue on %s)', (backend) => {
  test('is waited for, to the second', async () => {
    const setup = await openSetup({
      backend,
      behaviour: { faults: [{ kind: 'retry-after', value: '2', first: 1 }] },
    });
    const begun = Date.now();
    const report = await setup.run(DAY);
    expect(Date.now() - begun).toBeGreaterThan(2_000);
    expect(report).toMatchObject({ state: 'completed', requests: 2 });
  });
});

const TLS = new URL('../fixtures/tls/', import.meta.url);

/** The sandbox behind TLS; the first so many connections get something that is no TLS. */
async function tlsDoor(target: () => string, garbled: number) {
  const sockets = new Set<Socket>();
  const counts = { connections: 0 };
  const secure = createSecureServer(
    { cert: readFileSync(new URL('cert.pem', TLS)), key: readFileSync(new URL('key.pem', TLS)) },
    (request, response) => {
      fetch(`${target()}${request.url}`)
        .then((response) => response.text())
        .then((text) => response.end(text))
        .catch(() => response.destroy());
    },
  );
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
  const inside = (secure.address() as AddressInfo).port;
  const front = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    counts.connections += 1;
    if (counts.connections <= garbled) {
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      return;
    }
    const inner = connect(inside, '127.0.0.1').on('error', () => undefined);
    sockets.add(inner);
    socket.pipe(inner).pipe(socket);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    secure.closeAllConnections();
    secure.close();
    front.close();
  });
  return { url: `https://127.0.0.1:${(front.address() as AddressInfo).port}`, counts };
}

describe('TLS', () => {
  test('a failed handshake is retried, and the window loads once one succeeds', async () => {
    let target = '';
    const { url, counts } = await tlsDoor(() => target, 2);
    const setup = await openSetup({ sourceUrl: url, settings: { EOD_TLS_VERIFY: 'false' } });
    target = setup.sandbox.url;
    const report = await setup.run(DAY);
    // The source got one request.
    expect(report).toMatchObject({ state: 'completed', requests: 1, windows: { loaded: 1 } });
    expect(counts.connections).toBe(3);
  });

  test('a certificate nobody vouches for is refused unless EOD_TLS_VERIFY=false', async () => {
    let target = '';
    const { url } = await tlsDoor(() => target, 0);
    const strict = await openSetup({ sourceUrl: url, settings: { EOD_OUTAGE_PATIENCE_MS: '1000' } });
    target = strict.sandbox.url;
    const refused = await strict.run(DAY);
    expect(refused).toMatchObject({ state: 'failed', windows: { failed: 1 } });
    const [window] = await windowsOf(strict, refused.runId);
    expect(window?.error).toMatch(/cannot be reached.*self-signed certificate/);
    expect(strict.sandbox.stats().requests).toBe(0);

    const lax = await openSetup({ sourceUrl: url, settings: { EOD_TLS_VERIFY: 'false' } });
    target = lax.sandbox.url;
    expect(await lax.run(DAY)).toMatchObject({ state: 'completed', windows: { loaded: 1 } });
  });
});

test('faults of every kind, on many windows: all of them end well', async () => {
  const kinds = FAULTS.map(([, fault]) => fault).filter(({ kind }) => kind !== 'hang');
  const setup = await openSetup({
    // Among so few no series changes, so that days are empty, too.
    instruments: 13,
    settings: { EOD_TIMEOUT_MS: '2000', EOD_ATTEMPTS: '20' },
    behaviour: {
      faults: kinds.map((fault, at) => ({
        ...fault,
        value: fault.kind === 'slow' ? '100' : (fault.value ?? '503'),
        every: 19 + 2 * at,
      })),
    },
  });
  const report = await setup.run({
    operations: ['GetBhavCopyCM', 'GetSeriesChange', 'GetTop5GainersLosers'],
    from: '2025-08-04',
    to: '2025-09-11',
  });
  expect(report.state).toBe('completed');
  expect(Object.keys(setup.sandbox.stats().byFault).length).toBeGreaterThan(4);
  expect(Object.keys(tally((await coverageRows(setup)).map(({ state }) => state))).sort()).toEqual([
    'empty',
    'holiday',
    'loaded',
    'not_published',
  ]);
  await accountsOf(setup, report);
});
