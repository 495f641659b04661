import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import type { EodOptions } from '../support/eod.ts';
import { query as ask } from '../support/query.ts';
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

test('the private Postgres can be queried, also while "eod up" runs, and with SQL from stdin', async () => {
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
  up.signal('SIGTERM');
  expect(await up.ended).toMatchObject({ code: 0 });
});
