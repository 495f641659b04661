import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { forAllAsync } from '../support/for-all.ts';
import { isSlowLayer } from '../support/layer.ts';
import { backends, openPipeline } from '../support/pipeline.ts';
import { serve } from '../support/serve.ts';

async function ask(url: string, method = 'GET') {
  const response = await fetch(url, { method });
  return { status: response.status, body: (await response.json()) as object };
}

test.each(backends)('shows whether database and queue respond, with the queue on %s', async (backend) => {
  const database = await testDatabase();
  const context = await openPipeline({ databaseUrl: database.url, backend });
  const stopping = new AbortController();
  const health = await serve(context, ['worker'], stopping.signal);
  expect(await ask(`${health.url}/healthz?x=1`)).toMatchObject({
    status: 200,
    body: { roles: ['worker'] },
  });
  const ready = {
    status: 200,
    body: {
      isReady: true,
      database: 'ok',
      queue: 'ok',
      storage: 'ok',
      waitingResponses: 0,
      isStopping: false,
      pipeline: expect.objectContaining({ state: expect.any(String) }),
    },
  };
  expect(await ask(`${health.url}/readyz`)).toEqual(ready);
  expect((await ask(`${health.url}/`)).status).toBe(404);
  expect((await ask(`${health.url}/healthz`, 'POST')).status).toBe(405);

  stopping.abort();
  expect(await ask(`${health.url}/readyz`)).toMatchObject({ status: 503, body: { isStopping: true } });
  expect((await ask(`${health.url}/healthz`)).status).toBe(200);

  await database.drop();
  const { status, body } = await ask(`${health.url}/readyz`);
  expect({ status, body }).toMatchObject({
    status: 503,
    body: { isReady: false, database: 'no response', pipeline: null },
  });
  expect(JSON.stringify(body)).not.toContain('eod_test');
});

test('a malformed request is refused, and the server goes on', async () => {
  const context = await openPipeline({});
  const health = await serve(context);
  for (const target of ['//', '//[', 'http://', '*']) {
    expect(await statusOf(health.url, target)).toMatch(/^HTTP\/1\.1 40[04] /);
  }
  expect((await ask(`${health.url}/healthz`)).status).toBe(200);
});

/** The first line of the response to a request whose target `fetch` would not send. */
async function statusOf(url: string, target: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end(`GET ${target} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
  return text(socket);
}

/** Parts of requests as clients, scanners and broken proxies send them. */
const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'CONNECT', 'TRACE', 'PRI', 'get', '', 'G\tET', 'M-SEARCH'];
const TARGETS = [
  '/',
  '/healthz',
  '/readyz',
  '//',
  '//[',
  '/\\\\',
  '*',
  'http://',
  'http://[::1',
  'x:80',
  '/%',
  '/%00',
  '/..//..',
  '?',
  '#',
  '',
];
const HEADERS = [
  'Host: x',
  'Host: [',
  'Connection: close',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Transfer-Encoding: chunked',
  'Expect: 100-continue',
  'Expect: nothing',
  'Range: bytes=9-1',
  ': no name',
  'no colon',
  `X: ${'y'.repeat(20_000)}`,
];
const requests = fc
  .record({
    method: fc.oneof(fc.constantFrom(...METHODS), fc.string()),
    target: fc.oneof(fc.constantFrom(...TARGETS), fc.webPath(), fc.string({ unit: 'binary' })),
    version: fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/9', '', '\0'),
    headers: fc.array(fc.oneof(fc.constantFrom(...HEADERS), fc.string({ unit: 'binary' })), { maxLength: 5 }),
    end: fc.constantFrom('\r\n\r\n', '\n\n', '\r\n', ''),
    body: fc.constantFrom('', 'hello', '5\r\nhello\r\n0\r\n\r\n', 'ZZ\r\n', 'GET // HTTP/1.1\r\n\r\n'),
    length: fc.option(fc.nat({ max: 200 })),
    leaves: fc.boolean(),
  })
  .map(({ method, target, version, headers, end, body, length, leaves }) => {
    const whole = `${[`${method} ${target} ${version}`, ...headers].join('\r\n')}${end}${body}`;
    return { text: length === null ? whole : whole.slice(0, length), leaves };
  });

test.each([[], ['web']])(
  'no request, however malformed or unfinished, ends the server (%s)',
  async (...roles) => {
    const context = await openPipeline({});
    const health = await serve(context, roles);
    const { hostname, port } = new URL(health.url);
    await forAllAsync([requests], { numRuns: 600 }, async (request) => {
      const socket = connect(Number(port), hostname);
      // Reset by the server, which is its right.
      socket.on('error', () => undefined);
      if (request.leaves) {
        socket.write(request.text, () => socket.destroy());
        await once(socket, 'close');
        return;
      }
      socket.end(request.text, 'latin1');
      const response = await text(socket).catch(() => '');
      expect(response).toMatch(/^$|^HTTP\/1\.1 (100|200|4\d\d|503) /);
    });
    expect((await ask(`${health.url}/healthz`)).status).toBe(200);
    expect((await ask(`${health.url}/readyz`)).status).toBe(200);
  },
);

test.runIf(isSlowLayer)('requests that are never finished do not keep others out', async () => {
  const context = await openPipeline({});
  const health = await serve(context);
  const { hostname, port } = new URL(health.url);
  const halves = Array.from({ length: 300 }, () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n');
    return new Promise((resolve) => socket.on('close', resolve).resume());
  });
  await Promise.all(halves);
  expect((await ask(`${health.url}/healthz`)).status).toBe(200);
});

test('a port that is taken is reported as such', async () => {
  const context = await openPipeline({});
  const first = await serve(context);
  const config = { ...context.config, EOD_HTTP_PORT: Number(new URL(first.url).port) };
  await expect(serve({ ...context, config })).rejects.toThrow(/cannot listen on .*EOD_HTTP_PORT/);
});
