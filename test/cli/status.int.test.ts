import { expect } from 'vitest';
import type { Forecast } from '../../src/jobs/runs/forecast.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import { bhavRow, loadBhav, openPool } from '../load/support.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { emptyDatabase, testDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { NSE_UDIFF } from '../support/import-support.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();
const SOURCE = { EOD_BASE_URL: 'http://127.0.0.1:1', EOD_ACCESS_KEY: 'key', EOD_HTTP_PORT: '0' };

test('says what to do first with an empty database', async ({ url }) => {
  const status = (env = {}) => runCli(['status'], { cwd, env: { ...env, DATABASE_URL: url } });
  const { code, stdout } = await status(SOURCE);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^nothing is loaded yet; first steps:\n\n {2}eod backfill --all .*--dry-run/);
  expect(stdout).toContain('eod --demo status');
  expect(stdout.match(/nothing/g)).toHaveLength(1);
  const without = await status();
  expect(without.stdout).toMatch(/^nothing is loaded yet; first steps:\n\n {2}set EOD_BASE_URL/);
  for (const line of without.stdout.split('\n')) {
    expect(line.length, line).toBeLessThanOrEqual(80);
  }
});

test('says when no worker has been seen for a minute, and so does --detach', async ({ url }) => {
  const env = { ...SOURCE, DATABASE_URL: url };
  const status = async () => (await runCli(['status'], { cwd, env })).stdout;
  expect(await status()).toMatch(/^no worker has been seen for a minute; "eod up" starts one$/m);
  const days = ['--from', '2025-09-08', '--to', '2025-09-08', '--exchange', 'NSE'];
  const detached = await runCli(['backfill', 'GetBhavCopyCM', ...days, '--detach'], { cwd, env });
  expect(detached).toMatchObject({ code: 0, stdout: 'run 1 enqueued: 1 window\n' });
  expect(detached.stderr).toBe('no worker has been seen for a minute; "eod up" starts one\n');

  const up = startCli(['up', '--roles', 'worker'], { cwd, env });
  await up.output(/eod is up/);
  expect(await status()).not.toContain('no worker');
  const { json } = await runJson<Status>(['status'], { cwd, env });
  expect(json.workers).toEqual({
    seen: 1,
    lastSeenAt: expect.stringMatching(/^\d{4}-.*Z$/),
    cannotStore: null,
    cannotStoreSince: null,
  });
  up.signal('SIGTERM');
  await up.ended;
  await query(url, "update etl.workers set seen_at = '2025-09-08T22:00:00+05:30'");
  expect(await status()).toContain(
    'no worker has been seen for a minute, the last one at 2025-09-08 22:00:00;',
  );
});

test('says how many loads are missing in names, events and factors, until the next run has ended', async ({
  url,
}) => {
  const env = { DATABASE_URL: url };
  const status = async () => {
    const { stdout } = await runCli(['status'], { cwd, env });
    const { json } = await runJson<Status>(['status'], { cwd, env });
    return [
      json.underivedLoads,
      /^names of instruments[^;]*;[^;]*date$/m.exec(stdout)?.[0].replace(/\s+/g, ' '),
    ];
  };
  expect(await status()).toEqual([0, undefined]);
  const store = openPool(url);
  await loadBhav(store, [bhavRow({ symbol: 'A', trade_date: '2025-08-28' })]);
  const sentence =
    'names of instruments, corporate events and price factors lack what 1 load changed; the end of a run brings them up to date';
  expect(await status()).toEqual([1, sentence]);
  expect((await runCli(['import', NSE_UDIFF], { cwd, env })).code).toBe(0);
  expect(await status()).toEqual([0, undefined]);
  expect(await query(url, "select symbol from market.instruments where symbol = 'A'")).toHaveLength(1);
});

test('says that Redis does not respond', async ({ url }) => {
  const env = { DATABASE_URL: url, REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
  const { code, stdout } = await runCli(['status'], { cwd, env });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^cannot use Redis at 127\.0\.0\.1:\d+: .*ECONNREFUSED/m);
  const { json } = await runJson<{ queueProblem: string }>(['status'], { cwd, env });
  expect(json.queueProblem).toMatch(/^cannot use Redis/);
});

test('only migrate, or what loads, creates tables in a database of one’s own; migrate --json says what it found', async () => {
  const env = { DATABASE_URL: (await emptyDatabase()).url };
  // What only looks or decides creates nothing: the address may be a wrong one.
  const commands = ['status', 'gaps', 'runs', 'runs 1', 'rejects', 'withdrawals', 'findings', 'state'];
  for (const command of [...commands, 'events', 'export prices']) {
    const { code, stdout, stderr } = await runCli(command.split(' '), { cwd, env });
    expect({ command, code, stdout, stderr }).toEqual({
      command,
      code: 2,
      stdout: '',
      stderr:
        'eod: the database of DATABASE_URL has no tables of eod: "eod migrate" creates them, if it is the right one\n',
    });
  }
  const schemas = "select from pg_namespace where nspname in ('etl', 'market')";
  expect(await query(env.DATABASE_URL, schemas)).toEqual([]);
  const first = await runJson(['migrate'], { cwd, env });
  expect(first.json).toEqual({ before: 'missing', hasMigrated: true });
  const second = await runJson(['migrate'], { cwd, env });
  expect(second.json).toEqual({ before: 'current', hasMigrated: false });
});

test('nightly --dry-run says what the night would take, and requests nothing', async () => {
  const env = {
    DATABASE_URL: (await testDatabase()).url,
    EOD_CALLS_PER_HOUR: '100',
    EOD_NIGHTLY_RESERVE: '30%',
  };
  const { code, json } = await runJson<Forecast>(['nightly', '--dry-run'], { cwd, env });
  expect(code).toBe(0);
  // The reserve is for the nights themselves.
  expect(json).toMatchObject({ kind: 'nightly', callsPerHour: 100, leftThisHour: 100 });
  expect(json.requests).toBeGreaterThan(10);
  const { stdout } = await runCli(['nightly', '--dry-run'], { cwd, env });
  expect(stdout).toContain('nightly runs may use 100 calls an hour');
  expect(await query(env.DATABASE_URL, 'select from etl.runs')).toEqual([]);
});

test('where there is no DATABASE_URL, up prints how to query the private Postgres', async () => {
  const cwd = temporaryFolder();
  const up = startCli(['up', '--roles', 'scheduler'], { cwd, env: { EOD_HTTP_PORT: '0' } });
  const psqlLine =
    /^its private Postgres: psql '(postgres:\/\/eod:\w+@127\.0\.0\.1:\d+\/eod\?sslmode=disable)'$/m;
  const [, url = ''] = await up.output(psqlLine, 50_000);
  // Its tables are there, though nobody has migrated them.
  expect(await query(url, 'select market.state()::int as state')).toEqual([{ state: 0 }]);
  expect(up.stderr()).toMatch(/^eod: DATABASE_URL is not set: created a private Postgres in .*postgres$/m);
  up.signal('SIGTERM');
  expect((await up.ended).code).toBe(0);
});
