import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startHealthServer } from '../../src/web/health.ts';
import { testDatabase } from '../support/database.ts';
import { backends, openPipeline } from '../support/pipeline.ts';

const SOURCE = 'http://127.0.0.1:1';

async function ask(url: string, method = 'GET') {
  const answer = await fetch(url, { method });
  return { status: answer.status, body: (await answer.json()) as object };
}

test.each(backends)('tells whether database and queue answer, with the queue on %s', async (backend) => {
  const database = await testDatabase();
  const context = await openPipeline({ databaseUrl: database.url, sourceUrl: SOURCE, backend });
  const stopping = new AbortController();
  const health = await startHealthServer(context, { roles: ['worker'], stopping: stopping.signal });
  try {
    expect(await ask(`${health.url}/healthz?x=1`)).toMatchObject({
      status: 200,
      body: { roles: ['worker'] },
    });
    const ready = { status: 200, body: { ready: true, database: 'ok', queue: 'ok', stopping: false } };
    expect(await ask(`${health.url}/readyz`)).toEqual(ready);
    expect((await ask(`${health.url}/`)).status).toBe(404);
    expect((await ask(`${health.url}/healthz`, 'POST')).status).toBe(405);

    stopping.abort();
    expect(await ask(`${health.url}/readyz`)).toMatchObject({ status: 503, body: { stopping: true } });
    expect((await ask(`${health.url}/healthz`)).status).toBe(200);

    await database.drop();
    const { status, body } = await ask(`${health.url}/readyz`);
    expect({ status, body }).toMatchObject({ status: 503, body: { ready: false, database: 'no answer' } });
    expect(JSON.stringify(body)).not.toContain('eod_test');
  } finally {
    await health.close();
  }
});

test('a malformed request is refused, and the server goes on', async () => {
  const { url } = await testDatabase();
  const context = await openPipeline({ databaseUrl: url, sourceUrl: SOURCE, backend: 'postgres' });
  const health = await startHealthServer(context, { roles: [], stopping: new AbortController().signal });
  try {
    for (const target of ['//', '//[', 'http://', '*']) {
      expect(await statusOf(health.url, target)).toMatch(/^HTTP\/1\.1 40[04] /);
    }
    expect((await ask(`${health.url}/healthz`)).status).toBe(200);
  } finally {
    await health.close();
  }
});

/** The first line of the answer to a request whose target `fetch` would not send. */
async function statusOf(url: string, target: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end(`GET ${target} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
  return text(socket);
}

test('a port that is taken is told as such', async () => {
  const { url } = await testDatabase();
  const context = await openPipeline({ databaseUrl: url, sourceUrl: SOURCE, backend: 'postgres' });
  const options = { roles: ['worker'], stopping: new AbortController().signal };
  const first = await startHealthServer(context, options);
  const config = { ...context.config, EOD_HTTP_PORT: Number(new URL(first.url).port) };
  await expect(startHealthServer({ ...context, config }, options)).rejects.toThrow(
    /cannot listen on .*EOD_HTTP_PORT/,
  );
  await first.close();
});
