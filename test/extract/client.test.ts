import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PipelineError } from '../../src/core/errors.ts';
import { sha256 } from '../../src/core/sha256.ts';
import { createSource, retryDelay, type SourceSettings } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { listen } from '../support/http-server.ts';
import { startProxy } from '../support/proxy.ts';
import { KEY, KEY_FORMS, requestedOf, SETTINGS, serve } from './support.ts';

const operation = operationNamed('GetTotalTradeHighlights');
const requested = requestedOf(operation);
const GOOD = JSON.stringify(operation.sample.response);

function source(changes: Partial<SourceSettings>) {
  const source = createSource({ ...SETTINGS, ...changes });
  onTestFinished(() => source.close());
  return source;
}

/** The error a call ends in; also proves that the key is nowhere in it. */
async function failure(changes: Partial<SourceSettings>, signal?: AbortSignal): Promise<PipelineError> {
  const error = await source(changes)
    .fetch(operation, requested, signal)
    .then(
      () => expect.fail('the call succeeded'),
      (thrown: PipelineError) => thrown,
    );
  const everything = inspect(error, { depth: 20, showHidden: true, getters: true });
  for (const form of KEY_FORMS) expect(everything).not.toContain(form);
  return error;
}

describe('a good response', () => {
  test('arrives as it was sent, with the number of bytes that were received', async () => {
    const { baseUrl, requests } = await serve((_, response) => {
      response.setHeader('content-type', 'text/plain').end(GOOD);
    });
    const client = source({ baseUrl });
    const response = await client.fetch(operation, requested);
    const body = Buffer.from(GOOD);
    expect(response).toEqual({ body, contentType: 'text/plain', bytes: GOOD.length, hash: sha256(body) });
    expect(client.read(operation, requested, response).fetched).toBe(1);
    expect(requests[0]?.method).toBe('GET');
    expect(requests[0]?.headers['accept-encoding']).toBe('gzip');
  });

  test('has a hash of its bytes before it is looked at, whatever they are', async () => {
    const body = `Oops ${KEY}`;
    const { baseUrl } = await serve((_, response) => response.end(body));
    const received = await source({ baseUrl }).receive(operation, requested);
    expect(received).toMatchObject({ hash: sha256(Buffer.from(body)), bytes: body.length });
    expect(() => received.check()).toThrow('Oops [redacted]');
  });

  test('parameters arrive decoded as they were meant', async () => {
    const { baseUrl, requests } = await serve((_, response) => response.end('{}'));
    const bhavcopy = operationNamed('GetBhavCopyCM');
    await source({ baseUrl }).fetch(bhavcopy, requestedOf(bhavcopy, { instruments: ['M&M', 'A+B'] }));
    const url = new URL(requests[0]?.url ?? '', baseUrl);
    expect(url.pathname).toBe('/GetBhavCopyCM');
    expect(url.search).toContain('instrumentIdentifiers=M%26M+A%2BB&');
    expect(url.searchParams.get('accessKey')).toBe(KEY);
  });

  test.each([
    ['gzip', gzipSync(GOOD)],
    ['deflate', deflateSync(GOOD)],
    ['br', brotliCompressSync(GOOD)],
  ])('compressed by %s', async (encoding, body) => {
    const { baseUrl } = await serve((_, response) => {
      response.setHeader('content-encoding', encoding).end(body);
    });
    const response = await source({ baseUrl }).fetch(operation, requested);
    expect(response.body.toString()).toBe(GOOD);
    expect(response.bytes).toBe(body.length);
  });
});

describe('size', () => {
  const cap = 1_000_000;

  test('a stated length over the cap is refused unread', async () => {
    const { baseUrl } = await serve((_, response) => {
      response.setHeader('content-length', cap + 1).flushHeaders();
    });
    expect(await failure({ baseUrl, maxResponseBytes: cap })).toMatchObject({ kind: 'too_large' });
  });

  test.each(['identity', 'gzip'])(
    'with an unstated length, the cap is allowed and one byte more is not, even in one chunk (%s)',
    async (encoding) => {
      const bytes = GOOD.length;
      const { baseUrl } = await serve((_, response) => {
        response.setHeader('content-encoding', encoding);
        response.write(encoding === 'gzip' ? gzipSync(GOOD) : GOOD);
        response.end();
      });
      const whole = await source({ baseUrl, maxResponseBytes: bytes }).fetch(operation, requested);
      expect(whole.body.toString()).toBe(GOOD);
      expect(await failure({ baseUrl, maxResponseBytes: bytes - 1 })).toMatchObject({ kind: 'too_large' });
    },
  );

  test('a body without a stated length is read up to the cap', async () => {
    const { baseUrl } = await serve((_, response) => {
      const more = () => {
        while (response.writable && response.write(Buffer.alloc(65_536, 32)));
        response.once('drain', more);
      };
      more();
    });
    expect(await failure({ baseUrl, maxResponseBytes: cap })).toMatchObject({ kind: 'too_large' });
  });

  test('a gzip bomb is not unpacked beyond the cap', async () => {
    const bomb = gzipSync(Buffer.alloc(100_000_000, 32));
    const { baseUrl } = await serve((_, response) => {
      response.setHeader('content-encoding', 'gzip').end(bomb);
    });
    const before = process.memoryUsage().rss;
    expect(await failure({ baseUrl, maxResponseBytes: cap })).toMatchObject({ kind: 'too_large' });
    expect(process.memoryUsage().rss - before).toBeLessThan(50_000_000);
  });
});

describe('failures become typed errors', () => {
  test.each([500, 502, 503, 429, 408, 425, 400, 403, 404, 301, 204])('HTTP status %i', async (status) => {
    const { baseUrl, requests } = await serve((request, response) => {
      response.writeHead(status, { location: 'http://127.0.0.1:9/elsewhere' });
      response.end(status === 204 ? undefined : `no: ${request.url}`);
    });
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'http_status', status });
    expect(requests).toHaveLength(1);
  });

  test('HTTP status 401 means that the key is refused', async () => {
    const { baseUrl } = await serve((_, response) => response.writeHead(401).end());
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'credential' });
  });

  test('Retry-After in seconds and as a date', async () => {
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(503, { 'retry-after': '7' }).end();
    });
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'http_status', retryAfterMs: 7_000 });
    const now = Date.UTC(2025, 1, 27, 12, 0, 0);
    expect(retryDelay('Thu, 27 Feb 2025 12:00:30 GMT', now)).toBe(30_000);
    expect(retryDelay('Thu, 27 Feb 2025 11:00:00 GMT', now)).toBe(0);
    expect(retryDelay('soon', now)).toBeNull();
    expect(retryDelay('-5', now)).toBeNull();
  });

  test('a diagnostic line wins over the status', async () => {
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(403).end('Access Denied. Key not found.');
    });
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'credential' });
  });

  test('a diagnostic line with status 200', async () => {
    const { baseUrl } = await serve((_, response) => response.end('Calls per hour are limited.'));
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'hourly_quota' });
  });

  test.each([
    ['200 with nothing', '', 'unreadable'],
    ['an HTML page', '<!DOCTYPE html><html><body>Bad gateway</body></html>', 'unreadable'],
    ['a very long HTML page', `\n <html>${'x'.repeat(100_000)}`, 'unreadable'],
    ['half a JSON', GOOD.slice(0, GOOD.length / 2), 'unreadable'],
    [
      'unknown text that repeats the key',
      `Oops ${KEY} ${encodeURIComponent(KEY)} ${KEY}`,
      'unknown_diagnostic',
    ],
    ['a JSON error that repeats the key', JSON.stringify({ message: `Oops ${KEY}` }), 'unknown_diagnostic'],
  ])('%s', async (_, body, kind) => {
    const { baseUrl } = await serve((_, response) => response.end(body));
    expect(await failure({ baseUrl })).toMatchObject({ kind });
  });

  test('broken and cut gzip', async () => {
    const bodies = [Buffer.from('not gzip at all'), gzipSync(GOOD).subarray(0, 60)];
    const { baseUrl, requests } = await serve((_, response) => {
      response.setHeader('content-encoding', 'gzip').end(bodies[requests.length - 1]);
    });
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'unreadable' });
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'unreadable' });
  });

  test('a compression that was not requested', async () => {
    const { baseUrl } = await serve((_, response) => {
      response.setHeader('content-encoding', 'zstd').end('x');
    });
    expect(await failure({ baseUrl })).toMatchObject({ kind: 'unreadable' });
  });

  test('no server', async () => {
    const { baseUrl, server } = await serve(() => undefined);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    const error = await failure({ baseUrl });
    expect(error).toMatchObject({ kind: 'network' });
    expect(error.message).toContain('ECONNREFUSED');
  });

  test('a connection reset before the response, and in the middle of it', async () => {
    const early = await serve((request) => request.socket.destroy());
    expect(await failure({ baseUrl: early.baseUrl })).toMatchObject({ kind: 'network' });
    const middle = await serve((request, response) => {
      response.setHeader('content-length', 1000);
      response.write(GOOD.slice(0, 20), () => request.socket.destroy());
    });
    expect(await failure({ baseUrl: middle.baseUrl })).toMatchObject({ kind: 'network' });
  });

  test('a server that does not speak HTTP', async () => {
    const { createServer } = await import('node:net');
    const server = createServer((socket) => socket.end(`garbage\r\n\r\n${KEY}`));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    for (const [scheme, says] of [
      ['http', 'the server at this address does not speak HTTP'],
      ['https', 'the address begins with https://, and the server there does not speak TLS'],
    ] as const) {
      expect(await failure({ baseUrl: `${scheme}://127.0.0.1:${port}` })).toMatchObject({
        kind: 'wrong_address',
        message: expect.stringContaining(`${says}: correct EOD_BASE_URL`),
      });
    }
  });

  test.each([
    [
      'http',
      `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(5_000_000)}\r\n\r\n`,
      'the server at this address is another one',
    ],
    ['http', '\x15\x03\x01\0\x02\x02F', 'the server there speaks TLS: https://'],
    ['https', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'the server there does not speak TLS'],
  ])('%s://, and a server of another kind', async (scheme, bytes, says) => {
    const { createServer } = await import('node:net');
    const server = createServer((socket) => {
      socket.on('error', () => undefined).write(bytes, 'latin1');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const error = await failure({ baseUrl: `${scheme}://127.0.0.1:${port}` });
    expect(error).toMatchObject({ kind: 'wrong_address', message: expect.stringContaining(says) });
    expect(error.message).toContain('EOD_BASE_URL');
  });

  test('no response in time: neither headers nor a body that trickles', async () => {
    const silent = await serve(() => undefined);
    expect(await failure({ baseUrl: silent.baseUrl, timeoutMs: 150 })).toMatchObject({ kind: 'timeout' });
    const listener: RequestListener = (_, response) => {
      const timer = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(timer));
    };
    const trickle = await serve(listener);
    expect(await failure({ baseUrl: trickle.baseUrl, timeoutMs: 150 })).toMatchObject({ kind: 'timeout' });
  });

  test('the deadline and an abort hold when memory is collected during the call', async () => {
    // Node 20 forgets a combined signal, and with it the deadline, once nothing refers to its parts.
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const collecting = setInterval(collect, 20);
    onTestFinished(() => clearInterval(collecting));
    const { baseUrl, requests } = await serve((_, response) => void response.write(' '));
    const { signal } = new AbortController();
    expect(await failure({ baseUrl, timeoutMs: 300 }, signal)).toMatchObject({ kind: 'timeout' });
    const stop = new AbortController();
    const aborted = failure({ baseUrl }, stop.signal);
    await expect.poll(() => requests.length).toBe(2);
    collect();
    stop.abort();
    expect(await aborted).toMatchObject({ kind: 'aborted' });
  });

  test('an abort before and during the call', async () => {
    const { baseUrl, requests } = await serve(() => stop.abort());
    const stop = new AbortController();
    expect(await failure({ baseUrl }, AbortSignal.abort())).toMatchObject({ kind: 'aborted' });
    expect(requests).toHaveLength(0);
    expect(await failure({ baseUrl }, stop.signal)).toMatchObject({ kind: 'aborted' });
  });
});

test('no more connections than allowed', async () => {
  let open = 0;
  let maxOpen = 0;
  const server = createServer((_, response) => void setImmediate(() => response.end('{}')));
  server.on('connection', (socket) => {
    maxOpen = Math.max(maxOpen, ++open);
    socket.on('close', () => open--);
  });
  const client = source({ baseUrl: await listen(server), connections: 3 });
  await Promise.all(Array.from({ length: 12 }, () => client.fetch(operation, requested)));
  expect(maxOpen).toBe(3);
});

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));
const serveTls = () =>
  listen(createTlsServer({ key: pem('key'), cert: pem('cert') }, (_, response) => response.end(GOOD)));

describe('through a proxy', () => {
  test('https: by CONNECT, which the proxy resolves; the certificate is verified as ever', async () => {
    const proxy = await startProxy({ 'service.example:4532': await serveTls() });
    const settings = { baseUrl: 'https://service.example:4532', proxies: { HTTPS_PROXY: proxy.url } };
    expect((await failure(settings)).message).toContain('self-signed certificate');
    const response = await source({ ...settings, tlsVerify: false }).fetch(operation, requested);
    expect(response.body.toString()).toBe(GOOD);
    expect(proxy.requests).toEqual(['CONNECT service.example:4532', 'CONNECT service.example:4532']);
  });

  test('http: by asking the proxy itself, with a password that is in no error', async () => {
    const { baseUrl } = await serve((_, response) => response.end(GOOD));
    const proxy = await startProxy({ 'service.example:80': baseUrl }, { credentials: 'us er:pa/ss' });
    const HTTP_PROXY = proxy.url.replace('//', '//us%20er:pa%2Fss@');
    const settings = { baseUrl: 'http://service.example', proxies: { HTTP_PROXY } };
    const response = await source(settings).fetch(operation, requested);
    expect(response.body.toString()).toBe(GOOD);
    expect(proxy.requests[0]).toMatch(/^GET http:\/\/service\.example\/GetTotalTradeHighlights\?/);

    const wrong = { ...settings, proxies: { HTTP_PROXY: HTTP_PROXY.replace('pa%2F', 'wrong') } };
    const error = await failure(wrong);
    expect(error).toMatchObject({ kind: 'network', message: expect.stringContaining('(407)') });
    expect(inspect(error)).not.toContain('wrongss');
  });

  test('a proxy that does not let us through, or is unreachable, is named', async () => {
    const proxy = await startProxy({});
    const baseUrl = 'https://service.example:4532';
    const refused = await failure({ baseUrl, proxies: { HTTPS_PROXY: proxy.url } });
    expect(refused).toMatchObject({
      kind: 'network',
      message: expect.stringMatching(/^the proxy does not connect us to the source: .*403/),
    });
    const away = await failure({ baseUrl, proxies: { HTTPS_PROXY: 'http://127.0.0.1:9' } });
    expect(away).toMatchObject({ kind: 'network', message: expect.stringContaining('127.0.0.1:9') });
  });

  test('hosts of NO_PROXY and this machine are called directly', async () => {
    const { baseUrl, requests } = await serve((_, response) => response.end(GOOD));
    const proxy = await startProxy({});
    const { port } = new URL(baseUrl);
    const direct: readonly (readonly [string, string[] | undefined])[] = [
      [baseUrl, undefined],
      [`http://localhost:${port}`, ['elsewhere.example']],
      [`http://127.0.0.2:${port}`, ['127.0.0.2']],
      [`http://127.0.0.2:${port}`, ['elsewhere.example', '*']],
    ];
    const all = createServer((_, response) => response.end(GOOD));
    all.listen(Number(port), '127.0.0.2');
    onTestFinished(() => void all.close());
    for (const [address, NO_PROXY] of direct) {
      const settings = { baseUrl: address, proxies: { HTTP_PROXY: proxy.url, NO_PROXY } };
      const response = await source(settings).fetch(operation, requested);
      expect(response.body.toString()).toBe(GOOD);
    }
    expect(requests).toHaveLength(2);
    expect(proxy.requests).toEqual([]);
  });
});

test('a self-signed certificate is refused, unless the setting allows it', async () => {
  const baseUrl = await serveTls();
  const error = await failure({ baseUrl });
  expect(error).toMatchObject({ kind: 'network' });
  expect(error.message).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
  const response = await source({ baseUrl, tlsVerify: false }).fetch(operation, requested);
  expect(response.body.toString()).toBe(GOOD);
});

test('the log has each call at level debug, and never the key', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const { baseUrl, requests } = await serve((request, response) => {
    response.end(
      requests.length === 1 ? GOOD : `no idea what ${decodeURIComponent(request.url ?? '')} means`,
    );
  });
  const client = createSource({ ...SETTINGS, baseUrl }, log);
  onTestFinished(() => client.close());
  await client.fetch(operation, requested);
  await expect(client.fetch(operation, requested)).rejects.toMatchObject({ kind: 'unknown_diagnostic' });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      operation: 'GetTotalTradeHighlights',
      exchange: 'BSE',
      from: '2025-02-27',
      status: 200,
      bytes: GOOD.length,
    },
    { status: 200 },
    { operation: 'GetTotalTradeHighlights', error: expect.stringContaining('[redacted]') },
  ]);
  for (const form of KEY_FORMS) expect(lines.join()).not.toContain(form);
});
