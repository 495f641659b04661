import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import { inspect } from 'node:util';
import { brotliDecompressSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { createSource } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { requestedOf, SETTINGS, serve } from '../extract/support.ts';
import { runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { spawnEod } from '../support/eod.ts';
import { freePort } from '../support/free-port.ts';
import { listen } from '../support/http-server.ts';
import { backfill, mostly, openPipeline, runToEnd } from '../support/pipeline.ts';
import { withClient } from '../support/query.ts';
import { freePrefix, redisUrl } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** Every letter that some notation spells differently. */
const KEY = `k3y/s'e+cr!et&"q\\u(0)%41 =ü~end`;

const strict = encodeURIComponent(KEY).replace(
  /[!'()*]/g,
  (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
);
const FORMS = [KEY, encodeURIComponent(KEY), strict, JSON.stringify(KEY).slice(1, -1)];

function expectSecret(text: string, source: string): void {
  expect(
    FORMS.filter((form) => text.includes(form)),
    `forms of the key in ${source}`,
  ).toEqual([]);
}

/** All rows of all tables of these schemas, and the statements the server remembers. */
async function postgresText(url: string, schemas: readonly string[]): Promise<string> {
  return withClient(url, async (client) => {
    const tables = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = any($1)`,
      [schemas],
    );
    const texts: string[] = [];
    for (const { name } of tables.rows) {
      const rows = await client.query<{ text: string }>(`select to_jsonb(t)::text as text from ${name} t`);
      texts.push(...rows.rows.map(({ text }) => `${name} ${text}`));
    }
    const running = await client.query<{ text: string }>('select query as text from pg_stat_activity');
    return [...texts, ...running.rows.map(({ text }) => text)].join('\n');
  });
}

/** Every key of a prefix with its value, whatever its type. */
async function redisText(prefix: string): Promise<string> {
  const redis = new Redis(redisUrl());
  const texts: string[] = [];
  try {
    for (const key of await redis.keys(`${prefix}:*`)) {
      const read: Record<string, () => Promise<unknown>> = {
        string: () => redis.get(key),
        hash: () => redis.hgetall(key),
        list: () => redis.lrange(key, 0, -1),
        set: () => redis.smembers(key),
        zset: () => redis.zrange(key, '0', '-1'),
        stream: () => redis.xrange(key, '-', '+'),
      };
      const value = await read[await redis.type(key)]?.();
      texts.push(`${key} ${JSON.stringify(value)}`);
    }
  } finally {
    redis.disconnect();
  }
  return texts.join('\n');
}

/** The process list, as `ps` shows it. */
function processList(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        // It has ended meanwhile.
        return '';
      }
    })
    .join('\n');
}

describe.each(mostly('redis'))('the access key (queue on %s)', (backend) => {
  test('appears nowhere but in the outgoing request, whatever goes wrong', async () => {
    const sandbox = await openSandbox({
      accessKey: KEY,
      instrumentsPerExchange: 40,
      behaviour: {
        delayMs: 60,
        faults: [
          { kind: 'diagnostic', value: `Problem with ${KEY} and ${strict}`, operation: 'GetCircuitBreakers' },
          { kind: 'status', every: 5 },
          { kind: 'reset', every: 6 },
          { kind: 'html', every: 7 },
          { kind: 'truncate', every: 8 },
        ],
      },
    });
    const { url } = await testDatabase();
    const prefix = freePrefix();
    const env = {
      EOD_BASE_URL: sandbox.url,
      EOD_ACCESS_KEY: KEY,
      EOD_LOG_LEVEL: 'trace',
      EOD_QUEUE_PREFIX: prefix,
      DATABASE_URL: url,
      EOD_ATTEMPTS: '4',
      EOD_BACKOFF_MS: '10',
      EOD_HTTP_PORT: '0',
      ...(backend === 'redis' ? { REDIS_URL: redisUrl() } : {}),
    };
    const options = { env, cwd: temporaryFolder() };
    const stored = async () =>
      `${await postgresText(url, ['etl', `${prefix}_queue`])}\n${backend === 'redis' ? await redisText(prefix) : ''}`;

    const args = ['GetBhavCopyCM', 'GetCircuitBreakers', '--from', '2025-09-08', '--to', '2025-09-11'];
    const eod = spawnEod(['backfill', ...args], options);
    await waitFor(() => sandbox.stats().requests >= 4, { timeoutMs: 30_000 });
    const during = await stored();
    const processes = processList();
    const { stdout, stderr } = await eod.ended;
    const after = await stored();

    // The right key did go out, and what we search in is what we mean to search in.
    expect(sandbox.stats().byDiagnostic).not.toHaveProperty('Access Denied. Key not found.');
    expect(processes).toContain('backfill GetBhavCopyCM');
    expect(during).toContain('run-1-window-');
    expect(after).toContain('Problem with [redacted] and [redacted]');
    expect(stderr).toContain('"level":"debug"');
    expectSecret(stdout, 'stdout');
    expectSecret(stderr, 'stderr');
    expectSecret(processes, 'the process list');
    expectSecret(during, 'what is stored during the run');
    expectSecret(after, 'what is stored after the run');

    const commands = ['config', 'config --json', 'status', 'run 1 --json', 'runs'].map((text) =>
      text.split(' '),
    );
    const results = await Promise.all(commands.map((args) => runCli(args, options)));
    for (const [at, result] of results.entries()) {
      expect(result.stdout.length).toBeGreaterThan(50);
      expectSecret(result.stdout + result.stderr, `eod ${commands[at]?.join(' ')}`);
    }
  });
});

const TLS = new URL('../fixtures/tls/', import.meta.url);

describe('errors do not tell the key', () => {
  const operation = operationNamed('GetBhavCopyCM');
  const failure = async (baseUrl: string) => {
    const source = createSource({ ...SETTINGS, accessKey: KEY, baseUrl, timeoutMs: 2_000 });
    const error = await source.fetch(operation, requestedOf(operation)).catch((caught: unknown) => caught);
    await source.close();
    expect(error).toBeInstanceOf(Error);
    expectSecret(inspect(error, { depth: 12, showHidden: true }), 'an error');
    return (error as Error).message;
  };

  test('of a refused connection, and of a host that does not exist', async () => {
    expect(await failure(`http://127.0.0.1:${await freePort()}`)).toContain('ECONNREFUSED');
    expect(await failure('http://source.invalid')).toContain('cannot be reached');
  });

  test('of TLS', async () => {
    const server = createSecureServer(
      { cert: readFileSync(new URL('cert.pem', TLS)), key: readFileSync(new URL('key.pem', TLS)) },
      (_, response) => response.end('{}'),
    );
    expect(await failure(await listen(server))).toContain('self-signed certificate');
  });

  test.each([
    ['a line of its own', 200, `Your key ${KEY} is odd`],
    ['the line of a refusal', 200, `Access Denied. Key ${KEY} not found.`],
    ['the line of a refusal, with a status', 403, `Access Denied. Key ${strict} blocked.`],
    ['a message in JSON', 200, JSON.stringify({ message: `no such key ${KEY}` })],
    ['a known message in JSON', 200, JSON.stringify({ message: `Access Denied. Key ${KEY} unknown.` })],
  ])('of a source that repeats it: %s', async (_, status, body) => {
    const { baseUrl } = await serve((_request, response) => {
      response.writeHead(status);
      response.end(body);
    });
    expect(await failure(baseUrl)).toContain('[redacted]');
  });
});

const ENCODINGS: readonly (readonly [string, (text: string) => Buffer])[] = [
  ['UTF-8', (text) => Buffer.from(text)],
  ['UTF-16, little end first', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['UTF-16, big end first', (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
];

test.each(ENCODINGS)(
  'a source that repeats the request in its response does not bring the key into what is kept, in %s',
  async (_, encode) => {
    const operation = operationNamed('GetSeriesChange');
    const { requested, response } = operation.sample;
    const [record] = (response as { Value: [Record<string, unknown>] }).Value;
    const echoes = [KEY, strict, encodeURIComponent(KEY)];
    const { baseUrl } = await serve((request, response) => {
      const echo = [request.url, ...echoes];
      const value = [record, { ...record, ISIN: 17, ScripId: null, Request: echo }, `not a record: ${KEY}`];
      response.end(encode(JSON.stringify({ Request: echo, Value: [...value, ...Array(10).fill(record)] })));
    });
    const { url } = await testDatabase();
    const pipeline = await openPipeline({
      databaseUrl: url,
      sourceUrl: baseUrl,
      settings: { EOD_ACCESS_KEY: KEY, EOD_MAX_REJECT_SHARE: '50%' },
    });
    const scope = {
      from: requested.from,
      to: requested.to,
      operations: [operation.name],
      exchanges: [requested.exchange],
    };
    const report = await runToEnd(pipeline, backfill(scope));
    expect(report).toMatchObject({ state: 'completed', rejected: 2, inserted: 1 });
    const stored = await postgresText(url, ['etl', 'market', 'market_history']);
    expectSecret(stored, 'what is stored');
    const { rows } = await pipeline.db.pool.query(
      `select r.problems, w.warnings, b.encoding, b.body from etl.rejects r join etl.windows w on w.id = r.window_id
         join etl.responses a on a.window_id = w.id join etl.response_bodies b on b.hash = a.hash`,
    );
    expect(rows).toHaveLength(2);
    const note = 'the response held the access key; [redacted] stands instead of it';
    for (const { problems, warnings, encoding, body } of rows) {
      expect(problems).toContainEqual({ path: '', message: note });
      expect(warnings).toContain(note);
      expect(encoding).toBe('br');
      const kept = brotliDecompressSync(body as Buffer);
      expectSecret(
        kept.toString('utf8') + kept.toString('utf16le') + kept.subarray(1).toString('utf16le'),
        'the kept body',
      );
    }
  },
);

test('what the source sends cannot steer the terminal; JSON keeps it', async () => {
  const hostile = 'odd \u001b]0;owned\u0007\u009b2J\u202etxt\u2066\u007f\r end';
  const sandbox = await openSandbox({
    accessKey: KEY,
    instrumentsPerExchange: 5,
    behaviour: { faults: [{ kind: 'diagnostic', value: hostile }] },
  });
  const env = {
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: KEY,
    EOD_LOG_LEVEL: 'debug',
    EOD_ATTEMPTS: '1',
    DATABASE_URL: (await testDatabase()).url,
  };
  const options = { env, cwd: temporaryFolder() };
  const args = ['GetSeriesChange', '--from', '2025-09-11', '--to', '2025-09-11'];
  const results = [
    await runCli(['backfill', ...args], options),
    await runCli(['runs', '1'], options),
    await runCli(['gaps', ...args], options),
    await runCli(['runs', '1', '--json'], options),
  ];
  for (const { stdout, stderr } of results) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for.
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e\u2066]/);
  }
  expect(results[0]?.stderr).toContain('\\u001b]0;owned\\u0007\\u009b2J\\u202etxt');
  const report = JSON.parse(results[3]?.stdout ?? '') as { failures: { error: string }[] };
  expect(report.failures[0]?.error).toContain('\u001b]0;owned\u0007\u009b2J\u202etxt');
});
