import { beforeAll, expect, test } from 'vitest';
import type { Gaps } from '../../src/jobs/runs/read-gaps.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { spawnEod } from '../support/eod.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// EOD_OPERATIONS says what is requested; the value of it that was stored last decides what is missing.

const cwd = temporaryFolder();
let url: string;
let sandbox: Awaited<ReturnType<typeof openSandbox>>;
const optionsFor = (EOD_OPERATIONS: string, more: Readonly<Record<string, string>> = {}) => ({
  cwd,
  env: { DATABASE_URL: url, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi', EOD_OPERATIONS, ...more },
});

beforeAll(async () => {
  url = (await testDatabase()).url;
  sandbox = await openSandbox();
});

const expectedExchanges = async (operation: string) =>
  (
    await query<{ exchanges: string[] }>(url, 'select exchanges from etl.expectations where operation = $1', [
      operation,
    ])
  )[0]?.exchanges;

const completenessOf = async (operation: string) =>
  (
    await query<{ sessions: number }>(
      url,
      'select count(*)::int as sessions from etl.completeness where operation = $1',
      [operation],
    )
  )[0]?.sessions;

const FAR = { EOD_HISTORY_DAYS: '10' };

test('migrate stores what is requested, and completeness follows it, whatever a process would request itself', async () => {
  expect((await runCli(['migrate'], optionsFor('default,GetBhavCopyFO', FAR))).code).toBe(0);
  expect(await expectedExchanges('GetBhavCopyFO')).toEqual(['BFO']);
  expect(await expectedExchanges('GetBhavCopyCM')).toEqual(['BSE', 'NSE']);
  expect(await expectedExchanges('GetBulkDeals')).toEqual([]);

  const missing = async (operations: string) => {
    const { json, stderr } = await runJson<Gaps>(['gaps'], optionsFor(operations, FAR));
    return { names: new Set(json.gaps.map(({ operation }) => operation)), stderr };
  };
  const same = await missing('default,GetBhavCopyFO');
  expect(same.names).toContain('GetBhavCopyFO');
  expect(same.stderr).toBe('');
  expect(await completenessOf('GetBhavCopyFO')).toBeGreaterThan(0);
  expect(await completenessOf('GetIndexDetail')).toBe(0);
  const other = await missing('default,-GetSeriesChange,GetIndexDetail');
  expect(other.names).toEqual(same.names);
  expect(other.stderr).toContain('differs from what the database has stored');
  expect(other.stderr).toContain('GetIndexDetail BSE_IDX');
  expect(other.stderr).toMatch(/GetBhavCopyFO BFO.*GetSeriesChange (BSE|NSE)/s);

  await runCli(['migrate'], optionsFor('default', FAR));
  expect(await expectedExchanges('GetBhavCopyFO')).toEqual([]);
  expect(await completenessOf('GetBhavCopyFO')).toBe(0);
});

test('nights and schedules request what the settings of their process say', async () => {
  const options = optionsFor('GetSeriesChange,GetIndexDetail');
  const { json: night } = await runJson<{ operations: { operation: string }[] }>(
    ['nightly', '--dry-run'],
    options,
  );
  expect(new Set(night.operations.map(({ operation }) => operation))).toEqual(
    new Set(['GetSeriesChange', 'GetIndexDetail']),
  );
  const { json: schedules } = await runJson<{ operation: string }[]>(['schedules'], options);
  expect(new Set(schedules.map(({ operation }) => operation))).toEqual(
    new Set(['GetSeriesChange', 'GetIndexDetail']),
  );
  const { stdout } = await runCli(['operations'], options);
  expect(stdout).toMatch(/^GetSeriesChange +\S+ +daily at/m);
  expect(stdout).toMatch(/^GetBhavCopyFO +BFO +not by EOD_OPERATIONS/m);
  expect(stdout).toMatch(/^GetBulkDeals +never: from files/m);
});

test('eod up with the scheduler stores what it requests, another role does not', async () => {
  const up = (roles: string) =>
    spawnEod(['up', '--roles', roles], optionsFor('default,GetIndexDetail', { EOD_HTTP_PORT: '0' }));
  const web = up('web');
  await web.output(/differs from what the database has stored/);
  web.kill('SIGTERM');
  await web.ended;
  expect(await expectedExchanges('GetIndexDetail')).toEqual([]);
  const scheduler = up('scheduler');
  await waitFor(async () => (await expectedExchanges('GetIndexDetail'))?.join() === 'BSE_IDX');
  scheduler.kill('SIGTERM');
  await scheduler.ended;
});

test('an operation that is no longer requested still has gaps, to be filled from files, and is requested only by name', async () => {
  await runCli(['migrate'], optionsFor('default', FAR));
  const load = (day: string) =>
    runCli(
      ['backfill', 'GetCircuitBreakers', '--exchange', 'NSE', '--from', day, '--to', day],
      optionsFor('default'),
    );
  expect((await load('2025-03-11')).code).toBe(0);
  expect((await load('2025-03-13')).code).toBe(0);
  const options = optionsFor('default,-GetCircuitBreakers', FAR);
  await runCli(['migrate'], options);
  const { json } = await runJson<Gaps>(['gaps', 'GetCircuitBreakers'], options);
  expect(json.gaps).toMatchObject([
    { exchange: 'NSE', from: '2025-03-12', to: '2025-03-12', reason: 'not_imported' },
  ]);
  const calls = () => sandbox.stats().byOperation.GetCircuitBreakers ?? 0;
  const before = calls();
  const range = ['--from', '2025-03-11', '--to', '2025-03-13'];
  const fill = ['gaps', 'fill', ...range, '--exchange', 'NSE'];
  const leavesOut = 'what no schedule requests is left out: name an operation to request it';
  expect(await runCli(fill, options)).toMatchObject({
    stdout: expect.stringContaining('completed'),
    stderr: expect.stringContaining(leavesOut),
  });
  expect(await runCli(fill, options)).toMatchObject({
    stdout: 'nothing else is missing\n',
    stderr: expect.stringContaining(leavesOut),
  });
  expect(calls()).toBe(before);
  expect((await runCli(['gaps', 'fill', 'GetCircuitBreakers', ...range], options)).code).toBe(0);
  expect(calls()).toBe(before + 1);
});
