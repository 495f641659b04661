import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { backends } from '../support/pipeline.ts';
import { query, withClient } from '../support/query.ts';
import { freePrefix, redisUrl } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const INSTALL = 'sudo apt-get install -y --no-install-recommends pgbouncer';

type Mode = 'session' | 'transaction' | 'statement';

/** A real pgbouncer before a fresh database, and the address of the database through it. */
const startPooler = async (mode: Mode) => (await startSwitchablePooler(mode)).pooled;

/** The same with the address of the database itself. `setMode` switches the running pooler. */
async function startSwitchablePooler(mode: Mode) {
  if (spawnSync('pgbouncer', ['--version'], { stdio: 'ignore' }).status !== 0) {
    throw new Error(`this test needs pgbouncer on the PATH, on Debian or Ubuntu:\n  ${INSTALL}`);
  }
  const direct = new URL((await testDatabase()).url);
  const port = await freePort();
  const file = join(temporaryFolder(), 'pgbouncer.ini');
  const configure = (pool: Mode) =>
    writeFileSync(
      file,
      `[databases]
* = host=${direct.hostname} port=${direct.port} user=${direct.username} password=${decodeURIComponent(direct.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${pool}
`,
      { mode: 0o644 },
    );
  configure(mode);
  // It does not run as root.
  const account = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const server = spawn('pgbouncer', [...account, file], { stdio: 'ignore' });
  onTestFinished(async () => {
    const gone = once(server, 'exit');
    if (server.exitCode === null && server.kill('SIGKILL')) await gone;
  });
  const pooled = new URL(direct);
  pooled.hostname = '127.0.0.1';
  pooled.port = String(port);
  await waitFor(() => withClient(pooled.href, async () => true), { what: 'pgbouncer' });
  const setMode = (pool: Mode) => {
    configure(pool);
    server.kill('SIGHUP');
  };
  return { pooled, direct, setMode };
}

/** Settings of a command that works through the pooler. */
const settings = (url: URL, sourceUrl: string) => ({
  DATABASE_URL: url.href,
  REDIS_URL: redisUrl(),
  EOD_QUEUE_PREFIX: freePrefix(),
  EOD_BASE_URL: sourceUrl,
  EOD_ACCESS_KEY: 'a key for tests',
  EOD_LOG_LEVEL: 'error',
});

test.each([
  [
    'transaction',
    ['status', 'migrate', 'up'],
    'a pooler there gives each transaction another session; locks, temporary tables and prepared statements are lost between them; set pool_mode = session in it, or connect to Postgres itself',
  ],
  // In pgbouncer's own words; commands that do work say before that they wait, as for any refusal of a pooler.
  ['statement', ['status'], 'transaction blocks not allowed in statement pooling mode'],
] as const)('pgbouncer with pool_mode = %s is refused in one sentence', async (mode, commands, reason) => {
  const url = await startPooler(mode);
  for (const command of commands) {
    const options = { env: settings(url, 'http://127.0.0.1:9'), cwd: temporaryFolder() };
    const { code, stderr } = await runCli([command], options);
    const sentence = `eod: cannot use Postgres at ${url.host}${url.pathname}: ${reason} (see DATABASE_URL)\n`;
    expect({ code, stderr }).toEqual({ code: 2, stderr: sentence });
  }
});

test.each(['transaction', 'statement'] as const)(
  'with pool_mode = %s the doctor names the remedy',
  async (mode) => {
    const options = { env: settings(await startPooler(mode), 'http://127.0.0.1:9'), cwd: temporaryFolder() };
    const { code, json } = await runJson<{ checks: object[] }>(['doctor', '--offline'], options);
    expect(code).toBe(1);
    expect(json.checks).toContainEqual({
      name: 'database',
      state: 'failed',
      found: expect.stringContaining('transaction'),
      remedy: expect.stringContaining('must use pool_mode = session'),
    });
  },
);

/** Other clients of a pooler, which need sessions of their own. @returns ends them. */
function startTraffic(url: URL, statement: string): () => Promise<void> {
  const others = new pg.Pool({ connectionString: url.href, max: 4 });
  others.on('error', () => undefined);
  let busy = true;
  const traffic = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (busy) await others.query(statement).catch(() => undefined);
    }),
  );
  return async () => {
    busy = false;
    await traffic;
    await others.end();
  };
}

test('a pooler that others use at the same moment is found out all the same', async () => {
  const url = await startPooler('transaction');
  const stopTraffic = startTraffic(url, 'select 1');
  for (let round = 0; round < 10; round += 1) {
    const options = { env: settings(url, 'http://127.0.0.1:9'), cwd: temporaryFolder() };
    expect(await runCli(['status'], options)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('pooler'),
    });
  }
  await stopTraffic();
});

test.each(backends)(
  'through pgbouncer with pool_mode = session the pipeline works, the queue on %s',
  async (backend) => {
    const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
    const { REDIS_URL, ...env } = settings(await startPooler('session'), sandbox.url);
    const options = { env: backend === 'redis' ? { ...env, REDIS_URL } : env, cwd: temporaryFolder() };
    const args = ['backfill', 'GetBhavCopyCM', '--from', '2025-09-11', '--to', '2025-09-12'];
    const run = await runJson<object>(args, options);
    expect(run).toMatchObject({ code: 0, json: { state: 'completed', windows: { loaded: 4 } } });
  },
);

test.each(backends)(
  'a pooler that shares sessions from one moment on stops the calls, is named, and nothing fails, the queue on %s',
  async (backend) => {
    const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
    const { pooled, direct, setMode } = await startSwitchablePooler('session');
    const { REDIS_URL, ...own } = settings(pooled, sandbox.url);
    const env = {
      ...own,
      ...(backend === 'redis' ? { REDIS_URL } : {}),
      EOD_CONCURRENCY: '2',
      EOD_HTTP_PORT: '0',
      EOD_CALLS_PER_HOUR: '100000',
    };
    const options = { env, cwd: temporaryFolder() };
    const up = startCli(['up'], options);
    await up.output(/eod is up/);
    const names = ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetTop5GainersLosers'];
    const args = ['backfill', ...names, '--from', '2025-07-14', '--to', '2025-09-10', '--detach'];
    await runCli(args, options);
    const windows = async () => {
      const [sums] = await query<{ loaded: number; failed: number; requests: number; total: number }>(
        direct.href,
        `select count(*) filter (where state in ('loaded', 'empty'))::int as loaded, count(*)::int as total,
           count(*) filter (where state = 'failed')::int as failed, sum(requests)::int as requests from etl.windows`,
      );
      return sums as NonNullable<typeof sums>;
    };
    await waitFor(async () => (await windows()).loaded > 5, { what: 'windows' });
    setMode('transaction');
    const stopTraffic = startTraffic(pooled, 'select pg_sleep(0.05)');
    const problem = 'select from etl.workers where cannot_store like $1';
    const reason = '%pool_mode = session%';
    await waitFor(async () => (await query(direct.href, problem, [reason])).length > 0, {
      what: 'the reason',
    });
    const alert = "select from etl.alerts where kind = 'cannot_store' and message like $1";
    await waitFor(async () => (await query(direct.href, alert, [reason])).length > 0, { what: 'the alert' });
    const before = await windows();
    const sightings = 'select from etl.workers where seen_at > $1 and cannot_store is not null';
    const later = new Date(Date.now() + 5_000).toISOString();
    await waitFor(async () => (await query(direct.href, sightings, [later])).length > 0, {
      what: 'five seconds',
    });
    const after = await windows();
    expect(after.requests - before.requests).toBeLessThanOrEqual(2);
    expect(after.loaded).toBeLessThan(after.total);
    expect(after).toMatchObject({ failed: 0 });
    await stopTraffic();
    setMode('session');
    await waitFor(async () => (await windows()).loaded === after.total, { what: 'the rest' });
    expect(await windows()).toMatchObject({ requests: after.total, failed: 0 });
  },
);
