import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import type { Gaps } from '../../src/jobs/runs/read-gaps.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { isSlowLayer } from '../support/layer.ts';
import { openPipeline } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { serve } from '../support/serve.ts';
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
  test('are imported beside those of the cash market, though no setting requests their operation', async ({
    url,
  }) => {
    for (const name of ['bhavcopy_fo', 'GETBHAVCOPYFO']) {
      const { code, stdout } = await runCli(['gaps', name], optionsFor(url));
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: 'no trading day is loaded yet, so none is missing\n',
      });
    }
    const { code, json, stderr } = await runJson<ImportReport>(
      ['import', folderOf(NSE, BSE, CASH)],
      optionsFor(url),
    );
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(json).toMatchObject({ state: 'completed', rejected: 0, withdrawn: 0 });
    const tables = Object.fromEntries(json.files.map(({ file, tables: counts }) => [basename(file), counts]));
    expect(tables).toMatchObject({
      [basename(NSE)]: { bhavcopy_fo: 35 },
      [basename(BSE)]: { bhavcopy_fo: 21 },
      [basename(CASH)]: { bhavcopy_cm: expect.any(Number) },
    });
    expect(await query(url, 'select count(*)::int as rows from market_partitions.bhavcopy_fo_2025')).toEqual([
      { rows: 56 },
    ]);

    // No schedule requests it from the source.
    const { json: schedules } = await runJson<{ operation: string }[]>(['schedules'], optionsFor(url));
    expect(schedules.map(({ operation }) => operation)).not.toContain('GetBhavCopyFO');
  });

  test('of both forms are loaded by one import', async ({ url }) => {
    const old = join(temporaryFolder(), 'fo13JUN2022bhav.csv');
    writeFileSync(
      old,
      'INSTRUMENT,SYMBOL,EXPIRY_DT,STRIKE_PR,OPTION_TYP,OPEN,HIGH,LOW,CLOSE,SETTLE_PR,CONTRACTS,VAL_INLAKH,OPEN_INT,CHG_IN_OI,TIMESTAMP,\nFUTIDX,BANKNIFTY,30-Jun-2022,0,XX,1,1,1,1,1,1,1,25,0,13-JUN-2022,\n',
    );
    const { code, json } = await runJson<ImportReport>(['import', old, NSE], optionsFor(url));
    expect({ code, inserted: json.inserted }).toEqual({ code: 0, inserted: 36 });
  });

  test('are the same after a replay', async () => {
    const { url } = await testDatabase();
    await runJson<ImportReport>(['import', NSE, BSE], optionsFor(url));
    const before = await contents(url);
    expect(before).toHaveLength(56);
    const replayed = await runJson<RunReport>(['replay', 'GetBhavCopyFO'], optionsFor(url));
    expect(replayed.json).toMatchObject({ state: 'completed', inserted: 0, updated: 0 });
  });

  test.runIf(isSlowLayer)(
    'have gaps: status, gaps and pages say which trading days no file covers, and their operation is requested only by name',
    async () => {
      const { url } = await testDatabase();
      const sandbox = await openSandbox();
      const options = {
        cwd,
        env: { DATABASE_URL: url, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi', EOD_EXCHANGES: 'NSE' },
      };
      const later = join(temporaryFolder(), basename(NSE).replace('20250312', '20250318'));
      writeFileSync(later, readFileSync(NSE, 'utf8').replaceAll('2025-03-12', '2025-03-18'));
      expect(await runCli(['import', NSE, later, CASH], options)).toMatchObject({ code: 0 });

      // 2025-03-14 was a holiday.
      const gap = {
        operation: 'GetBhavCopyFO',
        exchange: 'NFO',
        from: '2025-03-13',
        to: '2025-03-17',
        sessions: 2,
        reason: 'not_imported',
      };
      for (const name of ['market.bhavcopy_fo', 'getbhavcopyfo'])
        expect((await runJson<Gaps>(['gaps', name], options)).json.gaps).toMatchObject([gap]);
      const text = await runCli(
        ['gaps', 'bhavcopy_fo', '--from', '2025-03-11', '--to', '2025-03-19'],
        options,
      );
      expect(text.code).toBe(1);
      expect(text.stdout).toContain('4 trading days missing in 3 ranges, 2025-03-11 to 2025-03-19');
      expect(text.stdout).toContain('import the files of these days with eod import');

      // The same with an exchange, and nothing for one without rows.
      const ofExchange = ['gaps', 'bhavcopy_fo', '--exchange'];
      expect((await runJson<Gaps>([...ofExchange, 'NFO'], options)).json.gaps).toMatchObject([gap]);
      expect(await runCli([...ofExchange, 'BFO'], options)).toMatchObject({
        code: 0,
        stdout: 'no trading day is loaded yet, so none is missing\n',
      });

      const { json: status } = await runJson<Status>(['status'], options);
      expect(status.operations.find(({ operation }) => operation === 'GetBhavCopyFO')).toMatchObject({
        exchange: 'NFO',
        isRequested: false,
        completeTo: '2025-03-12',
        lastComplete: '2025-03-18',
        lastRecords: 35,
      });
      expect((await runCli(['status'], options)).stdout).toContain(
        'come from files: bhavcopy_cm, bhavcopy_fo',
      );

      const pipeline = await openPipeline({ databaseUrl: url, settings: options.env });
      const { url: web } = await serve(pipeline, ['web']);
      const page = async (path: string) => (await fetch(`${web}${path}`)).text();
      expect(await page('/')).toMatch(/href="\/coverage\/GetBhavCopyFO\/NFO">.*comes from files/);
      expect(await page('/coverage?year=2025')).toContain('Prices of derivatives');
      const days = await page('/coverage/GetBhavCopyFO/NFO?year=2025');
      expect(days).toContain('no file of it was imported');
      expect(days).toContain('eod import');
      expect(days).not.toContain('gaps fill');

      const fill = ['gaps', 'fill', '--from', '2025-03-12', '--to', '2025-03-18'];
      const filled = await runCli(fill, options);
      expect(filled.stderr).toContain('what no schedule requests is left out');
      await runCli(['nightly', '--date', '2025-03-19'], options);
      const calls = () => sandbox.stats().byOperation;
      expect(calls().GetBhavCopyCM).toBeGreaterThan(0);
      expect(calls().GetBhavCopyFO).toBeUndefined();
      // It is requested if it is named.
      await runCli([...fill, 'bhavcopy_fo'], options);
      expect(calls().GetBhavCopyFO).toBeGreaterThan(0);
    },
  );

  test('what files list by no day is shown as lists, and deals that leave out days have no gaps', async () => {
    const { url } = await testDatabase();
    const deals = join(temporaryFolder(), 'block.csv');
    const deal = (day: string) => `${day},INFY,Infosys Limited,SOMEBODY,BUY,"1,000",1500.00`;
    const header =
      'Date,Symbol,Security Name,Client Name,Buy/Sell,Quantity Traded,Trade Price / Wght. Avg. Price';
    writeFileSync(deals, [header, deal('12-MAR-2025'), deal('18-MAR-2025')].join('\n'));
    const lists = [
      'files/sec_bhavdata_full_14112024.csv',
      'actions/symbolchange.csv',
      'lists/nse_industry_classification.csv',
    ];
    expect(await runCli(['import', deals, ...lists.map(fixture)], optionsFor(url))).toMatchObject({
      code: 0,
    });
    const { json: status } = await runJson<Status>(['status'], optionsFor(url));
    expect(status.operations).toMatchObject([
      { operation: 'GetBhavCopyCM' },
      { operation: 'GetBlockDeals', missingSessions: 0, lastComplete: '2025-03-18', lastRecords: 1 },
    ]);
    expect(status.lists).toMatchObject([
      { operation: 'Deliveries', exchange: 'NSE', day: '2024-11-14' },
      { operation: 'IndustryClassification', exchange: 'NSE', day: null },
      { operation: 'SymbolChanges', exchange: 'NSE' },
    ]);
    const { stdout } = await runCli(['status'], optionsFor(url));
    expect(stdout).toMatch(/^deliveries +NSE +daily +2024-11-14/m);
    expect(stdout).toMatch(/^industry_classification +NSE +a list +no day/m);
    const { json: gaps, code } = await runJson<Gaps>(['gaps', 'block_deals'], optionsFor(url));
    expect({ code, total: gaps.total }).toEqual({ code: 0, total: 0 });
  });

  test('gaps name what has no daily schedule, and the check of deliveries finds a day without any', async () => {
    const { url } = await testDatabase();
    const full = fixture('files/sec_bhavdata_full_14112024.csv');
    const ofAnotherDay = (file: string, [from, to]: [string, string], name: string) => {
      const path = join(temporaryFolder(), name);
      writeFileSync(path, readFileSync(file, 'utf8').replaceAll(from, to));
      return path;
    };
    const files = [
      full,
      ofAnotherDay(full, ['14-Nov-2024', '12-Nov-2024'], 'sec_bhavdata_full_12112024.csv'),
      ofAnotherDay(CASH, ['2025-08-29', '2024-11-13'], 'BhavCopy_NSE_CM_0_0_0_20241113_F_0000.csv'),
    ];
    expect(await runCli(['import', ...files], optionsFor(url))).toMatchObject({ code: 0 });
    expect(await runCli(['gaps'], optionsFor(url))).toMatchObject({
      code: 0,
      stdout:
        'nothing is missing, 2024-11-12 to 2024-11-14\nnot checked for gaps, because these have no daily schedule: Deliveries,\n  deliveries\n',
    });
    expect((await runCli(['gaps', 'corporate_actions'], optionsFor(url))).stdout).toBe(
      'no trading day is loaded yet, so none is missing\n',
    );
    const range = ['--from', '2024-11-12', '--to', '2024-11-14'];
    expect(await runCli(['reconcile', ...range], optionsFor(url))).toMatchObject({ code: 0 });
    const { json: findings } = await runJson<object[]>(
      ['findings', '--check', 'missing_deliveries'],
      optionsFor(url),
    );
    expect(findings).toMatchObject([{ exchange: 'NSE', date: '2024-11-13' }]);
  });

  test('prices have the same gaps with and without --exchange, and eod import is not advised where no file helps', async () => {
    const { url } = await testDatabase();
    await runCli(['import', fixture('files/EQ070421.CSV')], optionsFor(url));
    const gapsOfBse = ['gaps', 'bhavcopy_cm', '--exchange', 'BSE'];
    for (const command of [['gaps'], ['gaps', 'bhavcopy_cm'], gapsOfBse])
      expect((await runJson<Gaps>(command, optionsFor(url))).json.total, command.join(' ')).toBe(0);
    const movers = await runCli(
      ['gaps', 'top_gainers_losers', '--exchange', 'BSE', '--from', '2021-04-07', '--to', '2021-04-07'],
      optionsFor(url),
    );
    expect(movers.stdout).toContain('1 trading day missing');
    expect(movers.stdout).not.toContain('eod import');
  });
});
