import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();
const optionsFor = (url: string) => ({ cwd, env: { DATABASE_URL: url } });

const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url));
const NSE = fixture('derivatives/BhavCopy_NSE_FO_0_0_0_20250312_F_0000.csv');
const BSE = fixture('derivatives/BhavCopy_BSE_FO_0_0_0_20250312_F_0000.CSV');
const CASH = fixture('bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv');

/** A folder with copies of these files. */
function folderOf(...files: readonly string[]): string {
  const folder = temporaryFolder();
  for (const file of files) copyFileSync(file, join(folder, basename(file)));
  return folder;
}

const contents = (url: string) =>
  query(
    url,
    `select exchange, symbol, expiry_date::text, strike_price::text, option_type, close_price::text, open_interest::text, revision
       from market.bhavcopy_fo order by 1, 2, 3, 4, 5`,
  );

describe('files of derivatives', () => {
  test('are imported beside those of the cash market, though nobody enabled their operation', async ({
    url,
  }) => {
    const { code, json, stderr } = await runJson<ImportReport>(
      ['import', folderOf(NSE, BSE, CASH)],
      optionsFor(url),
    );
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(json).toMatchObject({ state: 'completed', rejected: 0, withdrawn: 0, differences: [] });
    const tables = Object.fromEntries(json.files.map(({ file, tables: counts }) => [basename(file), counts]));
    expect(tables).toMatchObject({
      [basename(NSE)]: { bhavcopy_fo: 35 },
      [basename(BSE)]: { bhavcopy_fo: 21 },
      [basename(CASH)]: { bhavcopy_cm: expect.any(Number) },
    });
    expect(stderr.match(/created market\.bhavcopy_fo/g)).toHaveLength(1);
    expect(stderr).toContain('"eod operations enable GetBhavCopyFO"');
    expect(await query(url, 'select name, is_enabled from etl.operations')).toEqual([
      { name: 'GetBhavCopyFO', is_enabled: false },
    ]);
    expect(await query(url, 'select count(*)::int as rows from market_partitions.bhavcopy_fo_2025')).toEqual([
      { rows: 56 },
    ]);

    // Commands that come later know the table, and the source is not requested it.
    const { json: schedules } = await runJson<{ operation: string }[]>(['schedules'], optionsFor(url));
    expect(schedules.map(({ operation }) => operation)).not.toContain('GetBhavCopyFO');
    const backfill = ['backfill', 'GetBhavCopyFO', '--from', '2025-03-12', '--to', '2025-03-12'];
    const settings = { EOD_BASE_URL: 'http://127.0.0.1:9', EOD_ACCESS_KEY: 'kiwi' };
    const refused = await runCli(backfill, { cwd, env: { ...settings, DATABASE_URL: url } });
    expect(refused.stderr).toContain('GetBhavCopyFO is not enabled');
    const again = await runCli(['import', NSE, '--force'], optionsFor(url));
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).not.toContain('created market');
  });

  test('are the same after a replay, also with --rebuild', async () => {
    const { url } = await testDatabase();
    await runJson<ImportReport>(['import', NSE, BSE], optionsFor(url));
    const before = await contents(url);
    expect(before).toHaveLength(56);
    const replayed = await runJson<RunReport>(['replay', 'GetBhavCopyFO'], optionsFor(url));
    expect(replayed.json).toMatchObject({ state: 'completed', inserted: 0, updated: 0 });
    const rebuilt = await runJson<RunReport>(['replay', 'GetBhavCopyFO', '--rebuild'], optionsFor(url));
    expect(rebuilt.json).toMatchObject({ state: 'completed', rejected: 0 });
    expect(await contents(url)).toEqual(before);
  });

  test('are imported where the operation is enabled, and it stays so', async () => {
    const { url } = await testDatabase();
    await runJson(['operations', 'enable', 'GetBhavCopyFO'], optionsFor(url));
    const { json, stderr } = await runJson<ImportReport>(['import', BSE], optionsFor(url));
    expect(json).toMatchObject({ state: 'completed', inserted: 21 });
    expect(stderr).not.toContain('created market');
    expect(await query(url, 'select name, is_enabled from etl.operations')).toEqual([
      { name: 'GetBhavCopyFO', is_enabled: true },
    ]);
  });
});
