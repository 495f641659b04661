import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, inject, test } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { emptyDatabase } from '../support/database.ts';
import { type Backend, mostly } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { redisUrl } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROLES = ['owner', 'worker', 'reader'] as const;
type Role = (typeof ROLES)[number];

/** The statements of docs/security.md, by who runs them. */
const [administrator, owner] = [
  ...readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8').matchAll(
    /```sql\n([\s\S]*?)```/g,
  ),
].map(([, sql]) => sql as string) as [string, string];

const made: string[] = [];
afterAll(async () => {
  for (const role of made)
    await execute(inject('databaseAdminUrl'), `drop owned by ${role}; drop role ${role}`).catch(
      () => undefined,
    );
});

/** A database as an administrator prepares it, and addresses to log in as each role. Roles are of the whole server. */
async function prepare() {
  const { url } = await emptyDatabase();
  const own = `r${randomBytes(4).toString('hex')}`;
  const named = (sql: string) => sql.replaceAll(/eod_(?=owner|worker|reader)/g, `${own}_`);
  await execute(url, named(administrator));
  const urls = {} as Record<Role, string>;
  for (const role of ROLES) {
    made.push(`${own}_${role}`);
    await execute(url, `alter role ${own}_${role} password 'kiwi'`);
    const login = new URL(url);
    login.username = `${own}_${role}`;
    login.password = 'kiwi';
    urls[role] = login.href;
  }
  return { urls, grant: (sql: string) => execute(urls.owner, named(sql)) };
}

const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };

/** Settings of a role; the prefix is that of the documented schema. */
function settings(url: string, backend: Backend, sandbox: Sandbox): Record<string, string> {
  return {
    DATABASE_URL: url,
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'a key for tests',
    EOD_HTTP_PORT: '0',
    EOD_LOG_LEVEL: 'error',
    ...(backend === 'redis' ? { REDIS_URL: redisUrl() } : {}),
  };
}

const nameOf = (url: string) => decodeURIComponent(new URL(url).username);

/** What of `etl` docs/security.md lets readers read. */
const READABLE = [
  'loads',
  'runs',
  'coverage',
  'completeness',
  'expectations',
  'sessions',
  'findings',
  'rejects',
  'withdrawals',
  'observed_aliases',
  'price_factors',
  'event_lists',
  'unlisted_days',
];

/** A value for each type of argument that functions of `market` take. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  bigint: 'market.state()',
  boolean: 'true',
  date: 'current_date',
  text: "'NSE'",
  'timestamp with time zone': 'now()',
};

/** Which tables, views and functions of `market` and its history the reader is refused, with the reason. */
async function refusedToReader(urls: Record<Role, string>): Promise<string[]> {
  const tables = await query(
    urls.owner,
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('market', 'market_history') and c.relkind in ('r', 'p', 'v', 'm')`,
  );
  const functions = await query(
    urls.owner,
    `select pronamespace::regnamespace as schema, proname as name, array(select format_type(t, null) from unnest(proargtypes) t) as types
       from pg_proc where pronamespace in ('market'::regnamespace, 'market_history'::regnamespace) and prokind = 'f'`,
  );
  const calls = functions.map(
    ({ schema, name, types }) =>
      `${schema}."${name}"(${types.map((type: string) => `${ARGUMENTS[type]}::${type}`).join(', ')})`,
  );
  expect(calls.filter((call) => call.includes('undefined'))).toEqual([]);
  expect(calls.length).toBeGreaterThan(20);
  const refused: string[] = [];
  for (const what of [...tables.map(({ name }) => name), ...calls]) {
    await query(urls.reader, `select * from ${what} limit 1`).catch((error) => {
      // Another argument would do where it is not of those the function knows.
      if (error.code !== '22023') refused.push(`${what}: ${error.message}`);
    });
  }
  return refused;
}

describe.each(mostly('postgres'))('the three roles of docs/security.md, the queue on %s', (backend) => {
  test('migrate as the owner, work as the worker, look as the reader', async () => {
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
    const { urls, grant } = await prepare();
    const cwd = temporaryFolder();
    const asRole = (role: Role) => ({ env: settings(urls[role], backend, sandbox), cwd });
    await grant(owner);
    for (const says of [/created the tables/, /up to date already/]) {
      expect(await runCli(['migrate'], asRole('owner'))).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(says),
      });
    }
    const reader = nameOf(urls.reader);
    expect(await runJson(['migrate', '--reader', reader], asRole('owner'))).toMatchObject({
      json: { before: 'current', readers: [reader] },
    });
    expect(await runJson(['events'], asRole('reader'))).toMatchObject({ code: 0, json: [] });
    const year = new Date().getUTCFullYear();
    const partitions =
      "select relname as name from pg_class where relnamespace = 'market_partitions'::regnamespace and relkind = 'r'";
    expect((await query(urls.owner, partitions)).map(({ name }) => name).sort()).toEqual([
      `bhavcopy_cm_${year}`,
      `bhavcopy_cm_${year + 1}`,
    ]);

    // Of a year that has no partition yet.
    const requested = ['GetBhavCopyCM', 'GetSeriesChange', '--from', '2025-09-11', '--to', '2025-09-12'];
    const run = await runJson<{ state: string; inserted: number }>(
      ['backfill', ...requested],
      asRole('worker'),
    );
    expect(run).toMatchObject({ code: 0, json: { state: 'completed' } });
    expect(run.json.inserted).toBeGreaterThan(10);
    expect((await query(urls.owner, partitions)).map(({ name }) => name)).toContain('bhavcopy_cm_2025');
    expect(await runCli(['replay', 'GetBhavCopyCM'], asRole('worker'))).toMatchObject({ code: 0 });
    expect(
      await runCli(['reconcile', '--from', '2025-09-11', '--to', '2025-09-12'], asRole('worker')),
    ).toMatchObject({ stderr: '' });
    expect(await runCli(['status'], asRole('worker'))).toMatchObject({ code: 0 });
    const rights = (says: string) => ({ name: 'rights', found: expect.stringContaining(says) });
    for (const [role, code, says] of [
      ['owner', 0, 'may work, and migrate'],
      ['worker', 0, 'may work; '],
      ['reader', 1, 'may not '],
    ] as const) {
      const doctor = await runJson<{ checks: unknown[] }>(['doctor', '--offline'], asRole(role));
      expect(doctor).toMatchObject({
        code,
        json: { checks: expect.arrayContaining([expect.objectContaining(rights(says))]) },
      });
    }
    const up = startCli(['up'], { env: settings(urls.worker, backend, sandbox), cwd });
    await up.output(/eod is up/);
    up.signal('SIGTERM');
    expect(await up.ended).toMatchObject({ code: 0 });
    await expect(query(urls.worker, 'drop table market.series_changes')).rejects.toThrow(/must be owner/);
    await expect(query(urls.worker, 'create table etl.mine ()')).rejects.toThrow(/permission denied/);

    const [now] = await query(urls.reader, 'select market.state()::int as state');
    expect(now?.state).toBeGreaterThan(0);
    expect(await query(urls.reader, `select from market_history.bhavcopy_cm_at(${now?.state})`)).toHaveLength(
      (await query(urls.reader, 'select from market.bhavcopy_cm')).length,
    );
    await query(
      urls.reader,
      'select * from market.instruments join market.instrument_aliases using (instrument_id)',
    );
    for (const name of READABLE) await query(urls.reader, `select * from etl.${name} limit 1`);
    expect(await refusedToReader(urls)).toEqual([]);
    // An auditor needs no more, whether the digests are stored yet or not.
    for (const by of ['reader', 'worker', 'reader'] as const) {
      expect(await runJson(['state', '--digest', '--content'], asRole(by))).toMatchObject({ code: 0 });
      const verified = await runJson(['verify'], asRole(by));
      expect(verified).toMatchObject({ code: 0, json: { isIntact: true, state: now?.state } });
    }
    await query(urls.reader, "select * from market.aliases_of('NSE:INE002A01018')");
    for (const refused of [
      'delete from market.bhavcopy_cm',
      'select * from etl.response_bodies',
      'select * from etl.access_keys',
      'select * from etl.call_budget',
      'select * from etl.responses',
      'select * from etl.windows',
      'create table market.mine ()',
      'create table public.mine ()',
      "select etl.ensure_year_partition('bhavcopy_cm', 1999)",
    ]) {
      await expect(query(urls.reader, refused), refused).rejects.toThrow(/permission denied/);
    }
  });
});

test('a worker before the first migrate is shown what to do', async () => {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
  const { urls } = await prepare();
  const env = settings(urls.worker, 'postgres', sandbox);
  const { code, stderr } = await runCli(['nightly'], { env, cwd: temporaryFolder() });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(/eod migrate/) });
});

test('a role that lacks a right is shown which role has it', async () => {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
  const { urls, grant } = await prepare();
  const cwd = temporaryFolder();
  const as = (role: Role, command: string) =>
    runCli([command], { env: settings(urls[role], 'postgres', sandbox), cwd });
  const refusal = (says: string) => ({ code: 2, stdout: '', stderr: expect.stringContaining(says) });
  expect(await as('worker', 'migrate')).toMatchObject(
    refusal(`there are no tables yet, and the role ${nameOf(urls.worker)} may not create or change them`),
  );
  await grant(owner);
  expect(await as('owner', 'migrate')).toMatchObject({ code: 0 });
  const reader = { env: settings(urls.owner, 'postgres', sandbox), cwd };
  expect(await runCli(['migrate', '--reader', nameOf(urls.reader)], reader)).toMatchObject({ code: 0 });
  const changed = await as('worker', 'migrate');
  expect(changed).toMatchObject(
    refusal(`the tables belong to ${nameOf(urls.owner)}, and the role ${nameOf(urls.worker)} may not`),
  );
  expect(changed.stderr).toContain('run "eod migrate" as the owner of the tables');
  const looked = await as('reader', 'status');
  expect(looked).toMatchObject(refusal(`the role ${nameOf(urls.reader)} lacks rights of a worker`));
  expect(looked.stderr).not.toContain('eod migrate');
  expect(looked.stderr.trim().split('\n')).toHaveLength(1);
});

test('readers are made and unmade, whatever they are called', async () => {
  const { urls, grant } = await prepare();
  await grant(owner);
  const cwd = temporaryFolder();
  const migrate = (...args: string[]) =>
    runCli(['migrate', ...args], { env: { DATABASE_URL: urls.owner }, cwd });
  const odd = `${nameOf(urls.reader)} "Ana's" désk; drop`;
  made.push(`"${odd.replaceAll('"', '""')}"`);
  await execute(inject('databaseAdminUrl'), `create role ${made.at(-1)} login password 'kiwi'`);
  const login = new URL(urls.reader);
  login.username = encodeURIComponent(odd);

  expect(await migrate('--reader', odd, '--reader', nameOf(urls.reader))).toMatchObject({
    code: 0,
    // The owner of the tables may not alter roles.
    stderr: expect.stringMatching(
      /^(eod: the role .* has no limits of time; a role that may alter it can set them: alter role .* set idle_session_timeout = '1d'\n){2}$/,
    ),
    stdout: expect.stringContaining(`readers: ${nameOf(urls.reader)}, ${odd}`),
  });
  for (const url of [urls.reader, login.href]) {
    await query(url, 'select from market.prices_adjusted');
    await query(url, 'select from etl.coverage');
  }

  // What comes later may be read too: in the schemas of which all is readable at once, of etl by the next migrate.
  await query(urls.owner, 'create view market.later as select 1 as one');
  await query(urls.owner, 'drop view market.later; create table market.later (one int)');
  expect(await query(login.href, 'select * from market.later')).toEqual([]);
  await query(urls.owner, `revoke select on etl.runs from ${made.at(-1)}`);
  await expect(query(login.href, 'select from etl.runs')).rejects.toThrow(/permission denied/);
  expect(await migrate()).toMatchObject({ code: 0 });
  await query(login.href, 'select from etl.runs');
  await query(urls.worker, 'delete from etl.runs');
  await query(urls.owner, 'drop table market.later');

  // Nothing is left to one whose rights were taken back: it can be dropped.
  expect(await migrate('--no-reader', odd)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`readers: ${nameOf(urls.reader)}\n$`)),
  });
  await expect(query(login.href, 'select from market.prices_adjusted')).rejects.toThrow(/permission denied/);
  await execute(inject('databaseAdminUrl'), `drop role ${made.pop()}`);
  expect(await migrate('--no-reader')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('readers: none'),
  });
  await expect(query(urls.reader, 'select from etl.loads')).rejects.toThrow(/permission denied/);
  await query(urls.worker, 'select from market.prices_adjusted');

  for (const [args, says] of [
    [['--reader', nameOf(urls.reader).toUpperCase()], `did you mean ${nameOf(urls.reader)}?`],
    [['--reader', nameOf(urls.owner)], 'owns the tables'],
    [['--reader', 'pg_read_all_data'], 'there is no role "pg_read_all_data"'],
    [['--no-reader', nameOf(urls.worker)], 'is not a reader; there is none'],
  ] as const) {
    expect(await migrate(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
  }
});
