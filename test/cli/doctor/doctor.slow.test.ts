import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { startEmbeddedPostgres } from '../../../src/postgres/embedded/index.ts';
import { runCli, runJson } from '../../support/cli.ts';
import { closeAfterFile } from '../../support/closing.ts';
import { emptyDatabase } from '../../support/database.ts';
import { startServer } from '../../support/http-server.ts';
import { query } from '../../support/query.ts';
import { execute } from '../../support/template.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { test } from '../support.ts';
import { type Examination, examine as examineIn, KEY, openPatient } from './doctor-support.ts';

const { cwd, DATABASE_URL, redis, sandbox, SETTINGS } = await openPatient();
const examine = (env: Readonly<Record<string, string>>, ...flags: string[]) => examineIn(cwd, env, ...flags);
const roles: string[] = [];

afterAll(async () => {
  for (const role of roles) await execute(DATABASE_URL, `drop owned by ${role}; drop role ${role}`);
});

test.each(['LATIN1', 'SQL_ASCII'])('a database in %s is refused, with what to do', async (encoding) => {
  const { url } = await emptyDatabase(`encoding '${encoding}' locale_provider libc locale 'C'`);
  const migrated = await runCli(['migrate'], { cwd, env: { DATABASE_URL: url } });
  expect(migrated).toMatchObject({ code: 2, stdout: '' });
  expect(migrated.stderr.replace(/\s+/g, ' ')).toContain(
    `the database has the encoding ${encoding}, which cannot store every name as the source sends it: create one in UTF8`,
  );
  expect(await query(url, "select from pg_namespace where nspname = 'etl'")).toEqual([]);
});

test('an hour that is used up is not overdrawn', async () => {
  await examine(SETTINGS);
  const { requests } = sandbox.stats();
  await query(DATABASE_URL, 'update etl.call_budget set calls = 900');
  const { code, check } = await examine(SETTINGS);
  expect(check('source')).toMatchObject({ state: 'skipped', found: expect.stringContaining('are used up') });
  expect({ code, requested: sandbox.stats().requests - requests }).toEqual({ code: 0, requested: 0 });
  await query(DATABASE_URL, 'delete from etl.call_budget');
});

test('the rights that a role lacks are named, and a database without tables is said to have none', async () => {
  const role = `reader${Date.now()}`;
  roles.push(role);
  await execute(
    DATABASE_URL,
    `create role ${role} login password 'kiwi'; grant usage on schema market to ${role}`,
  );
  const login = new URL(DATABASE_URL);
  login.username = role;
  login.password = 'kiwi';
  const reader = await examine({ ...SETTINGS, DATABASE_URL: login.href });
  expect(reader.code).toBe(1);
  expect(reader.check('rights').found).toMatch(
    new RegExp(`^the role ${role} may not use the schemas .*etl.*; read etl\\.\\S+.* more; change rows of`),
  );
  expect(reader.check('source').found).toContain('not counted');
  const empty = await examine({ ...SETTINGS, DATABASE_URL: (await emptyDatabase()).url }, '--offline');
  expect(empty.check('migrations')).toMatchObject({
    state: 'failed',
    found: 'there are no tables yet',
    remedy: expect.stringContaining('eod migrate'),
  });
  expect(empty.states).toMatchObject({ database: 'ok', rights: 'ok' });
});

test('a Redis that drops jobs fails, one that might is a warning, one that keeps them is ok', async () => {
  const client = new Redis(redis.url);
  closeAfterFile(() => void client.disconnect());
  const states = async (settings: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(settings)) await client.config('SET', name, value);
    const { states } = await examine({ REDIS_URL: redis.url, EOD_DATA_DIR: 'none' }, '--offline');
    return states.queue;
  };
  expect(await states({ 'maxmemory-policy': 'allkeys-lru' })).toBe('warning');
  expect(await states({ maxmemory: '100mb' })).toBe('failed');
  expect(await states({ 'maxmemory-policy': 'noeviction' })).toBe('ok');
});

test('a clock that differs from that of the source fails', async () => {
  const url = await startServer((_, response) => {
    response.setHeader('date', new Date(Date.now() - 19_830_000).toUTCString());
    response.end('[]');
  });
  const { check } = await examine({ EOD_BASE_URL: url, EOD_ACCESS_KEY: KEY });
  expect(check('clock').state).toBe('failed');
  expect(check('clock').found).toMatch(/^ours is 5h 30m ahead of the source's; EOD_TIMEZONE is/);
});

describe('a private Postgres as an interrupted first command leaves it', () => {
  const folder = temporaryFolder();
  const closed = join(folder, 'closed');
  const options = { cwd: folder, env: { EOD_DATA_DIR: closed } };
  let data = '';

  beforeAll(async () => {
    // The account that the server runs under may not enter such a folder of root, like /root.
    mkdirSync(closed, { mode: 0o700 });
    const server = await startEmbeddedPostgres({ dataDir: join(closed, 'postgres') });
    await server.stop();
    data = JSON.parse(readFileSync(join(closed, 'postgres', 'server.json'), 'utf8')).data;
  });
  afterAll(() => rmSync(dirname(data), { recursive: true, force: true }));

  test('there is no warning about tables that the next command makes automatically', async () => {
    const { json } = await runJson<Examination>(['doctor', '--offline'], options);
    expect(json.checks).toContainEqual({
      name: 'migrations',
      state: 'skipped',
      found: 'there are no tables yet; the next command that uses them brings them up to date',
      remedy: null,
    });
    expect(json.checks.filter(({ state }) => state === 'warning')).toEqual([]);
  });

  test('doctor and config name the folder in which its files really are, and why', async () => {
    const isRoot = process.getuid?.() === 0;
    expect(data.startsWith(closed)).toBe(!isRoot);
    const { json } = await runJson<Examination>(['doctor', '--offline'], options);
    const findingOf = (name: string) => json.checks.find((check) => check.name === name)?.found;
    const folder = isRoot ? data : closed;
    expect(findingOf('database')).toContain(`the private Postgres in ${folder}: version`);
    expect(findingOf('disk')).toContain(`GB are free for the data of Postgres in ${folder}`);
    const { json: settings } = await runJson<Record<string, { value: unknown; instead?: unknown }>>(
      ['config'],
      options,
    );
    expect(settings.EOD_DATA_DIR).toMatchObject({ value: closed, from: 'environment' });
    expect(settings.EOD_DATA_DIR?.instead).toEqual(
      isRoot ? { path: data, why: expect.stringMatching(/may not enter .*closed/) } : undefined,
    );
  });
});
