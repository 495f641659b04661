import { beforeAll, describe, expect } from 'vitest';
import type { Gaps } from '../../src/jobs/runs/read-gaps.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { runCli, runJson, unwrapped } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { countsOf } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { bhavFolder, FOLDER_DAY } from './bhav-folder.ts';
import { ARGS, contents, cwd, RANGE, settings } from './preview-support.ts';
import { test } from './support.ts';

const CORRECTION = { without: ['GAIL', 'ABAN'], close: { TCS: '3333.3' }, added: ['NEWCO'] };

describe('a preview of a correction', () => {
  let url: string;
  let corrected: Sandbox;
  beforeAll(async () => {
    url = (await testDatabase()).url;
    const first = await openSandbox({ dataDir: bhavFolder() });
    corrected = await openSandbox({ dataDir: bhavFolder(CORRECTION) });
    const { json } = await runJson<RunReport>(ARGS, settings(url, first));
    expect(json).toMatchObject({ state: 'completed', inserted: 200 });
  });

  test('counts and shows on both exchanges what the backfill then does, and stores nothing', async () => {
    const before = await contents(url);
    expect(before['market.bhavcopy_cm']).toMatch(/^200 /);
    const { code, json } = await runJson<RunReport>(
      [...ARGS, '--force', '--preview'],
      settings(url, corrected),
    );
    expect(await contents(url)).toEqual(before);
    expect(code).toBe(0);
    expect(json).toMatchObject({ kind: 'preview', state: 'completed', requests: 2, suspicious: [] });
    const each = {
      fetched: 100,
      inserted: 1,
      updated: 1,
      unchanged: 98,
      stale: 0,
      rejected: 0,
      withdrawn: 1,
    };
    expect(json.operations).toMatchObject([
      { exchange: 'BSE', ...each },
      { exchange: 'NSE', ...each },
    ]);
    const sample = (change: string, exchange: string, symbol: string, series: string, columns = {}) => ({
      table: 'market.bhavcopy_cm',
      change,
      columns,
      key: { exchange, symbol, series, trade_date: FOLDER_DAY },
    });
    expect(json.preview).toEqual([
      sample('updated', 'BSE', 'TCS', 'A', { close_price: { old: '3049.45', new: '3333.3' } }),
      sample('withdrawn', 'BSE', 'GAIL', 'A'),
      sample('inserted', 'BSE', 'NEWCO', 'A'),
      sample('updated', 'NSE', 'TCS', 'EQ', { close_price: { old: '3084.7', new: '3333.3' } }),
      sample('withdrawn', 'NSE', 'ABAN', 'EQ'),
      sample('inserted', 'NSE', 'NEWCO', 'GB'),
    ]);

    const human = await runCli([...ARGS, '--force', '--preview'], settings(url, corrected));
    expect(human.code).toBe(0);
    expect(unwrapped(human.stdout)).toContain(
      'nothing was stored; it would insert 2, update 2 and withdraw 2 rows (196 unchanged, 0 stale, 0 rejected), for example\n',
    );
    expect(human.stdout).toMatch(/^updated +NSE +TCS +EQ +2025-09-09 +close_price: 3084\.7 → 3333\.3$/m);
    expect(human.stdout).toMatch(/^withdrawn +BSE +GAIL +A +2025-09-09$/m);
    expect(await contents(url)).toEqual(before);

    const real = await runJson<RunReport>([...ARGS, '--force'], settings(url, corrected));
    expect(countsOf(real.json)).toEqual(countsOf(json));
    expect(await contents(url)).not.toEqual(before);
  });

  test('skips what is loaded as the backfill would, asks nothing, and says how to compare it', async () => {
    const asked = corrected.stats().requests;
    const { code, stdout } = await runCli([...ARGS, '--preview'], settings(url, corrected));
    expect(code).toBe(0);
    expect(stdout).toContain(
      '2 windows skipped: loaded already\nwhat is loaded already is asked for again with --force\n',
    );
    expect(corrected.stats().requests).toBe(asked);
  });
});

test('a preview into an empty database leaves it empty, rejects too, and the day as missing as before', async () => {
  const { url } = await testDatabase();
  // `n/a` is no price: one record is rejected.
  const source = await openSandbox({ dataDir: bhavFolder({ close: { TCS: 'n/a' } }) });
  const { env } = settings(url, source);
  const options = { cwd, env: { ...env, EOD_HISTORY_DAYS: '10000' } };
  const scope = ['GetBhavCopyCM', ...RANGE, '--exchange', 'BSE'];
  // The first command writes the calendar.
  const before = await runJson<Gaps>(['gaps', ...scope], options);
  const empty = await contents(url);
  const { json } = await runJson<RunReport>(['backfill', ...scope, '--preview'], options);
  expect(json).toMatchObject({ inserted: 99, rejected: 1, requests: 1 });
  expect(json.preview.map(({ change }) => change)).toEqual(Array(5).fill('inserted'));
  expect(await contents(url)).toEqual(empty);
  const after = await runJson<Gaps>(['gaps', ...scope], options);
  expect(after.json).toEqual(before.json);
  expect(after.json.gaps).toMatchObject([{ reason: 'never_asked', sessions: 1 }]);
});

test('a preview of days of which nothing is known writes down no holiday', async ({ url }) => {
  const args = ['backfill', 'GetSeriesChange', '--from', '2025-08-25', '--to', FOLDER_DAY, '--preview'];
  await runJson<RunReport>(args, settings(url, await openSandbox({ instrumentsPerExchange: 30 })));
  expect(await query(url, 'select * from etl.coverage')).toEqual([]);
});

test.each([['--detach'], ['--dry-run']])('--preview %s makes no sense', async (flag) => {
  const { code, stdout, stderr } = await runCli([...ARGS, '--preview', flag], { cwd });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/'--preview' cannot be used with option/);
});
