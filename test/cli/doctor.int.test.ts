import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { runCli } from '../support/cli.ts';
import { closeAfterFile } from '../support/closing.ts';
import { isSlowLayer } from '../support/layer.ts';
import { query } from '../support/query.ts';
import { freePrefix } from '../support/redis.ts';
import { execute } from '../support/template.ts';
import { examine as examineIn, KEY, openPatient } from './doctor-support.ts';
import { test } from './support.ts';

const { cwd, DATABASE_URL, redis, sandbox, SETTINGS } = await openPatient();
const examine = (env: Readonly<Record<string, string>>, ...flags: string[]) => examineIn(cwd, env, ...flags);

test('where all is well nothing fails, and two calls were made and counted', async () => {
  const { requests } = sandbox.stats();
  const { code, json, states, stdout, check } = await examine(SETTINGS);
  expect(states).toEqual({
    node: 'ok',
    settings: 'ok',
    disk: 'ok',
    database: 'ok',
    'time zone': 'ok',
    pooler: 'ok',
    rights: 'ok',
    migrations: 'ok',
    connections: expect.stringMatching(/ok|warning/),
    // A Postgres with the settings it comes with.
    'query settings': 'warning',
    queue: 'ok',
    'queue eviction': 'ok',
    // The Redis of the tests keeps nothing.
    'queue persistence': 'warning',
    'queue jobs': 'ok',
    requested: 'ok',
    calendar: 'ok',
    night: 'ok',
    source: 'ok',
    'access key': 'ok',
    'key limits': 'ok',
    'key expiry': 'ok',
    'key rights': 'ok',
    clock: 'ok',
    quota: 'ok',
    storage: 'ok',
    format: 'skipped',
  });
  expect({ code, isOk: json.isOk }).toEqual({ code: 0, isOk: true });
  expect(json.node).toBe(process.version);
  for (const { state, remedy } of json.checks) expect(remedy === null).toBe(/^(ok|skipped)$/.test(state));
  expect(sandbox.stats().requests - requests).toBe(2);
  expect(check('quota').found).toMatch(/^898 of 900 calls/);
  expect(await query(DATABASE_URL, 'select calls from etl.call_budget')).toEqual([{ calls: 2 }]);
  expect(stdout).not.toContain(KEY);
  const [{ data = '' } = {}] = await query<{ data: string }>(
    DATABASE_URL,
    "select current_setting('data_directory') as data",
  );
  expect(check('disk').found).toContain(
    existsSync(data) ? `${data} (the data of Postgres)` : 'the disk of Postgres cannot be seen',
  );
});

test('--offline makes no call', async () => {
  const { requests } = sandbox.stats();
  const { code, states } = await examine(SETTINGS, '--offline');
  expect(code).toBe(0);
  expect(states).toMatchObject({ source: 'skipped', 'access key': 'skipped', clock: 'ok', quota: 'ok' });
  expect(sandbox.stats().requests).toBe(requests);
});

test('a page for people: what is not ok, each remedy, within 80 columns', async () => {
  const env = { ...SETTINGS, EOD_ACCESS_KEY: 'a wrong key', EOD_LOOKBACK_SESSIONS: '40' };
  const { code, stdout } = await runCli(['doctor'], { cwd, env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^failed {3}access key {9}\S/m);
  expect(stdout).not.toMatch(/^ok /m);
  expect(stdout).toMatch(/^What to do:$/m);
  expect(stdout).toMatch(/^ {2}access key: correct EOD_ACCESS_KEY/m);
  expect(stdout).toMatch(/^ {2}settings: set EOD_LOOKBACK_SESSIONS to/m);
  expect(stdout).not.toMatch(/^skipped /m);
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    / 18 of 24 checks are ok, 2 were skipped \("eod -v doctor" lists them\)\. 1 check failed\. $/,
  );
  const all = await runCli(['-v', 'doctor'], { cwd, env });
  expect(all.stdout).toMatch(/^ok {7}source/m);
  expect(all.stdout).toMatch(/^skipped +format/m);
  expect(all.stdout).toMatch(/\n18 of 24 checks are ok, 2 were skipped\. 1 check failed\.\n$/);
  for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
});

test.runIf(isSlowLayer)('with everything down or silent each check still says its own', async () => {
  // Takes connections and never responds.
  const silent = createTcpServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  closeAfterFile(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const { code, check, json, stdout, stderr } = await examine({
    DATABASE_URL: `postgres://eod:hunter2@127.0.0.1:${port}/eod`,
    REDIS_URL: 'redis://:hunter2@127.0.0.1:1',
    EOD_BASE_URL: `http://127.0.0.1:${port}`,
    EOD_ACCESS_KEY: 'kiwi-key',
    EOD_TIMEOUT_MS: '300',
    EOD_DATA_DIR: join(cwd, 'not', 'there'),
    EOD_CALENDAR_FILE: 'nowhere.csv',
  });
  expect({ code, isOk: json.isOk }).toEqual({ code: 1, isOk: false });
  expect(check('database')).toMatchObject({
    state: 'failed',
    remedy: expect.stringContaining('DATABASE_URL'),
  });
  expect(check('migrations')).toMatchObject({ state: 'skipped' });
  expect(check('queue')).toMatchObject({ state: 'failed', found: expect.stringContaining('ECONNREFUSED') });
  expect(check('calendar')).toMatchObject({ state: 'failed', found: expect.stringContaining('nowhere.csv') });
  expect(check('night')).toMatchObject({ state: 'ok' });
  expect(check('source')).toMatchObject({
    state: 'failed',
    found: expect.stringMatching(/^timeout: .*not counted/),
  });
  expect(check('disk')).toMatchObject({ state: 'ok', found: expect.stringContaining(cwd) });
  expect(`${stdout}${stderr}`).not.toMatch(/hunter2|kiwi-key/);
});

test('jobs that the queue has lost', async ({ url }) => {
  const env = { ...SETTINGS, DATABASE_URL: url, EOD_QUEUE_PREFIX: freePrefix() };
  const flags = ['--from', '2025-09-01', '--to', '2025-09-05', '--exchange', 'NSE', '--detach'];
  expect(await runCli(['backfill', 'GetBhavCopyCM', ...flags], { cwd, env })).toMatchObject({ code: 0 });
  expect((await examine(env, '--offline')).check('queue jobs')).toMatchObject({
    state: 'ok',
    found: 'every open window has a job in the queue',
  });
  const client = new Redis(redis.url);
  const [waiting = ''] = await client.keys(`${env.EOD_QUEUE_PREFIX}:*:backfill:prioritized`);
  await client.zremrangebyrank(waiting, 0, 1);
  expect((await examine(env, '--offline')).check('queue jobs')).toMatchObject({
    state: 'warning',
    found: 'the queue has lost the jobs of 2 open windows',
    remedy: expect.stringContaining('"eod up"'),
  });
  client.disconnect();
});

test('without a configuration it says what is missing; with one that cannot be read the exit code is 2', async () => {
  const bare = await examine({});
  expect(bare.code).toBe(1);
  expect(bare.check('source')).toMatchObject({
    state: 'failed',
    found: 'EOD_BASE_URL and EOD_ACCESS_KEY are not set',
    remedy: expect.stringMatching(/eod init.*eod sandbox/),
  });
  expect(bare.check('database')).toMatchObject({
    state: 'ok',
    found: expect.stringContaining('private Postgres'),
  });
  const { code, stderr } = await runCli(['doctor'], { cwd, env: { EOD_CONCURRENCY: 'many' } });
  expect(code).toBe(2);
  expect(stderr).toContain('EOD_CONCURRENCY');
});

test('settings for queries over many rows are those that a new session has', async ({ url }) => {
  const env = { ...SETTINGS, DATABASE_URL: url };
  const name = `"${new URL(url).pathname.slice(1)}"`;
  const found = async () => (await examine(env, '--offline')).check('query settings');
  // Our own sessions are without jit in any case.
  for (const set of ["work_mem = '4MB'", 'random_page_cost = 4', 'jit = on'])
    await execute(url, `alter database ${name} set ${set}`);
  const [{ jit } = { jit: false }] = await query<{ jit: boolean }>(url, 'select pg_jit_available() as jit');
  expect(await found()).toEqual({
    name: 'query settings',
    state: 'warning',
    found: `work_mem is 4 MB, random_page_cost 4, jit ${jit ? 'on' : 'off'}`,
    remedy: expect.stringContaining("work_mem = '64MB', random_page_cost = 1.1 (on an SSD)"),
  });
  for (const set of ["work_mem = '64MB'", 'random_page_cost = 1.1', 'jit = off'])
    await execute(url, `alter database ${name} set ${set}`);
  expect(await found()).toMatchObject({
    state: 'ok',
    found: 'work_mem is 64 MB, random_page_cost 1.1, jit off',
  });
});
