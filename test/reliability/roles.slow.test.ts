import { describe, expect, test } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { nameOf, prepareRoles, type Role } from '../support/documented-roles.ts';
import { type Backend, mostly } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { redisUrl } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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

describe.each(mostly('postgres'))('the three roles of docs/security.md, the queue on %s', (backend) => {
  test('migrate as the owner, work as the worker, look as the reader', async () => {
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
    const { urls, grant } = await prepareRoles();
    const cwd = temporaryFolder();
    const asRole = (role: Role) => ({ env: settings(urls[role], backend, sandbox), cwd });
    await grant('owner: what the worker may do');
    for (const says of [/created the tables/, /up to date already/]) {
      expect(await runCli(['migrate'], asRole('owner'))).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(says),
      });
    }
    await grant('owner: what a reader may do');
    expect(await runJson(['events'], asRole('reader'))).toMatchObject({ code: 0, json: [] });
    const year = new Date().getUTCFullYear();
    const partitions =
      "select relname as name from pg_class where relnamespace = 'market_partitions'::regnamespace and relkind = 'r'";
    expect((await query(urls.owner, partitions)).map(({ name }) => name).sort()).toEqual([
      `bhavcopy_cm_${year}`,
      `bhavcopy_cm_${year + 1}`,
      `bhavcopy_fo_${year}`,
      `bhavcopy_fo_${year + 1}`,
    ]);

    // Of a year that has no partition yet.
    const args = ['GetBhavCopyCM', 'GetSeriesChange', '--from', '2025-09-11', '--to', '2025-09-12'];
    const run = await runJson<{ state: string; inserted: number }>(['backfill', ...args], asRole('worker'));
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
    expect(await runJson(['state'], asRole('reader'))).toMatchObject({
      code: 0,
      json: { state: now?.state },
    });
    await query(urls.reader, "select * from market.aliases_of('NSE:INE002A01018')");
  });
});

test('a worker before the first migrate is shown what to do', async () => {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
  const { urls } = await prepareRoles();
  const env = settings(urls.worker, 'postgres', sandbox);
  const { code, stderr } = await runCli(['nightly'], { env, cwd: temporaryFolder() });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(/eod migrate/) });
});

test('a role that lacks a right is shown which role has it', async () => {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
  const { urls, grant } = await prepareRoles();
  const cwd = temporaryFolder();
  const as = (role: Role, command: string) =>
    runCli([command], { env: settings(urls[role], 'postgres', sandbox), cwd });
  const refusal = (says: string) => ({ code: 2, stdout: '', stderr: expect.stringContaining(says) });
  expect(await as('worker', 'migrate')).toMatchObject(
    refusal(`there are no tables yet, and the role ${nameOf(urls.worker)} may not create or change them`),
  );
  await grant('owner: what the worker may do');
  expect(await as('owner', 'migrate')).toMatchObject({ code: 0 });
  await grant('owner: what a reader may do');
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
