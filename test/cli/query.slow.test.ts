import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { type EodOptions, runEod } from '../support/eod.ts';
import { query as ask } from '../support/query.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();

const { url } = await testDatabase();

const options = { cwd, env: { DATABASE_URL: url } };

const run = (...args: string[]) => runCli(['query', ...args], options);

const working = () =>
  ask<{ pid: number }>(
    url,
    "select pid from pg_stat_activity where datname = current_database() and state = 'active' and query like 'execute eod%'",
  );

test('a statement that takes too long, and one that somebody stops, end on the server', async () => {
  expect(await run('--timeout', '1', 'select pg_sleep(60)')).toMatchObject({
    code: 1,
    stderr: 'eod: the statement took longer than 1 s (--timeout) and was cancelled\n',
  });
  const stopped = startCli(['query', 'select pg_sleep(60)'], options);
  await waitFor(async () => ((await working()).length === 1 ? true : null), { what: 'the query' });
  stopped.signal('SIGINT');
  expect(await stopped.ended).toMatchObject({ code: 130, stdout: '' });
  expect(await working()).toEqual([]);
});

const LAUNCHER = fileURLToPath(new URL('../../bin/eod.mjs', import.meta.url));

/** A line of a shell with `eod` in it. Fails when its exit code is not 0. */
const shell = (line: string, { cwd, env = {} }: EodOptions) =>
  promisify(execFile)('sh', ['-c', line.replaceAll('eod', `"${process.execPath}" "${LAUNCHER}"`)], {
    cwd,
    env: { PATH: process.env.PATH, EOD_DATA_DIR: '.eod', ...env },
    timeout: 40_000,
  });

test('a large result takes little memory, and ends with its reader', async () => {
  const sql = "select n, repeat('x', 200) as text from generate_series(1, 400000) n";
  const folder = temporaryFolder();
  const limited = { ...options.env, NODE_OPTIONS: '--max-old-space-size=40' };
  // Quietly, because it may take five seconds on a busy machine.
  const whole = await shell(`eod -q query --csv "${sql}" > whole.csv`, { cwd: folder, env: limited });
  expect(whole.stderr).toBe('');
  expect(statSync(join(folder, 'whole.csv')).size).toBeGreaterThan(80_000_000);
  const head = await shell(`eod query --csv "${sql}" | head -n 2`, options);
  expect(head).toMatchObject({ stderr: '', stdout: expect.stringMatching(/^n,text\n1,x+\n$/) });
  expect(await working()).toEqual([]);
});

const psqlVersion = await promisify(execFile)('psql', ['--version']).then(
  ({ stdout }) => stdout,
  () => null,
);

if (psqlVersion === null) console.warn('there is no psql here: what needs it is not tested');

/** psql writes to the stdout of the process. */
const psql = (args: readonly string[], options: EodOptions) => runEod(['psql', '--', ...args], options);

test('the private Postgres, also while "eod up" runs, and SQL from stdin', async () => {
  const home = temporaryFolder();
  const env = { EOD_BASE_URL: 'http://127.0.0.1:1', EOD_ACCESS_KEY: 'a key', EOD_HTTP_PORT: '0' };
  const sql = 'select count(*) from market.bhavcopy_cm';
  expect(await runCli(['migrate'], { cwd: home })).toMatchObject({ code: 0 });
  expect(await runCli(['query', '--csv', sql], { cwd: home })).toMatchObject({
    code: 0,
    stdout: 'count\n0\n',
  });
  const written = join(home, 'written');
  // As a role that is no superuser, and cannot become one.
  for (const dangerous of [
    "select pg_read_file('/etc/passwd')",
    `select lo_export(1, '${written}')`,
    "select pg_ls_dir('/')",
    "select set_config('role', 'eod', false), pg_read_file('/etc/passwd')",
    "select set_config('session_authorization', 'eod', false), pg_read_file('/etc/passwd')",
    `explain analyze select pg_read_file('/etc/passwd')`,
    'select pg_reload_conf()',
    `/* /* */ explain */ copy (select 1) to program 'touch ${written}'`,
    `-- \rexplain\ncopy (select 1) to program 'touch ${written}'`,
  ]) {
    expect({ dangerous, ...(await runCli(['query', dangerous], { cwd: home })) }).toMatchObject({
      dangerous,
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/permission denied|syntax error/),
    });
  }
  expect(existsSync(written)).toBe(false);
  const rights = `select rolsuper, pg_has_role('eod', 'member') as may_become from pg_roles where rolname = current_user`;
  expect(await runJson(['query', rights], { cwd: home })).toMatchObject({
    json: [{ rolsuper: false, may_become: false }],
  });
  const all =
    "select count(*) as tables from pg_class where relkind in ('r', 'v', 'p') and not has_table_privilege(oid, 'select') and relnamespace::regnamespace::text ~ '^(market|etl)'";
  expect(await runJson(['query', all], { cwd: home })).toMatchObject({ json: [{ tables: 0 }] });
  const up = startCli(['up'], { cwd: home, env });
  await up.output(/eod is up/, 40_000);
  expect((await shell(`echo '${sql}' | eod query --csv -`, { cwd: home })).stdout).toBe('count\n0\n');
  if (psqlVersion !== null) {
    expect(await psql(['-Atc', sql], { cwd: home })).toMatchObject({ code: 0, stdout: '0\n' });
    expect(await psql(['-c', 'select from nowhere'], { cwd: home })).toMatchObject({ code: 1 });
  }
  const without = startCli(['psql'], { cwd: home, env: { PATH: home } });
  await without.output(/^postgres:\/\/eod:\w+@127/);
  expect(without.stderr()).toContain('psql was not found in the PATH');
  without.signal('SIGINT');
  expect(await without.ended).toMatchObject({ code: 0 });
  up.signal('SIGTERM');
  expect(await up.ended).toMatchObject({ code: 0 });
});

test('psql gets the password by its environment, and is named where it is missing', async () => {
  const login = new URL(url);
  const role = `psql_${login.pathname.slice(-8)}`;
  await execute(inject('databaseAdminUrl'), `create role ${role} login password 'kiwi-7'`);
  login.username = role;
  login.password = 'kiwi-7';
  login.searchParams.set('statement_timeout', '0');
  const env = { DATABASE_URL: login.href };
  const missing = await runCli(['psql'], { cwd, env: { ...env, PATH: cwd } });
  expect(missing).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining(`postgres://${role}@`),
  });
  expect(missing.stderr).not.toContain('kiwi-7');
  if (psqlVersion !== null) {
    const requested = ['-Atc', 'select current_user', '-c', '\\! ps -o args= -C psql'];
    // These would lead psql alone to other servers.
    const elsewhere = { PGHOSTADDR: '192.0.2.1', PGSERVICE: 'elsewhere' };
    const { stdout } = await psql(requested, { cwd, env: { ...env, ...elsewhere } });
    expect(stdout).toContain(`${role}\n`);
    expect(stdout).toMatch(/psql postgres:/);
    expect(stdout).not.toContain('kiwi-7');
  }
  await execute(inject('databaseAdminUrl'), `drop role ${role}`);
});
