import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const WEEKLY = [
  'Symbol,Series,Weekly High,Weekly Volume,Last Day',
  'ACC,EQ,101.50,"1,200",29-Aug-2025',
  'TCS,EQ,99.00,900,29-Aug-2025',
];

/** A folder, and the environment of a database of its own. */
async function open() {
  const cwd = temporaryFolder();
  const { url } = await testDatabase();
  const write = (name: string, lines: readonly string[]) => {
    mkdirSync(join(cwd, name, '..'), { recursive: true });
    writeFileSync(join(cwd, name), `${lines.join('\n')}\n`);
  };
  return { cwd, url, write, options: { cwd, env: { DATABASE_URL: url } } };
}

test('a file of unknown form becomes a declaration that is checked, and imported with its own table', async () => {
  const { cwd, url, write, options } = await open();
  write('in/weekly_29082025.csv', WEEKLY);
  write(
    'in/weekly_05092025.csv',
    WEEKLY.map((line) => line.replace('29-Aug', '05-Sep')),
  );
  const drafted = await runCli(['operations', 'draft', 'in/weekly_29082025.csv'], options);
  expect(drafted.stdout).toMatch(/^wrote operations\/files\/Weekly\.mjs: \d+ guesses are marked\n$/);
  const text = readFileSync(join(cwd, 'operations/files/Weekly.mjs'), 'utf8');
  expect(text).toContain("files: ['weekly_DDMMYYYY.csv']");
  expect(text).toContain("int8('Weekly Volume', 'weekly_volume'");
  const checked = await runJson<object[]>(['operations', 'check', 'operations/files/Weekly.mjs'], options);
  expect(checked.json).toMatchObject([{ name: 'Weekly', isGood: true, problems: [] }]);

  const first = await runCli(['import', 'in'], options);
  expect(first).toMatchObject({ code: 0 });
  expect(first.stderr).toContain('created market.weekly for these files\n');
  expect(first.stdout).toMatch(/^weekly +2 +4 +0 +0 {2}weekly$/m);
  const stored = () =>
    query(
      url,
      'select last_day::text, symbol, weekly_high_price::text as high, weekly_volume::int from market.weekly order by 1, 2',
    );
  const expected = [
    { last_day: '2025-08-29', symbol: 'ACC', high: '101.50', weekly_volume: 1_200 },
    { last_day: '2025-08-29', symbol: 'TCS', high: '99.00', weekly_volume: 900 },
    { last_day: '2025-09-05', symbol: 'ACC', high: '101.50', weekly_volume: 1_200 },
    { last_day: '2025-09-05', symbol: 'TCS', high: '99.00', weekly_volume: 900 },
  ];
  expect(await stored()).toEqual(expected);
  expect((await runCli(['import', 'in'], options)).stdout).toContain('2 files: 0 loaded, 2 skipped');
  expect(await runCli(['operations', 'Weekly'], options)).toMatchObject({ code: 0 });
  expect(await runCli(['replay', '--rebuild'], options)).toMatchObject({ code: 0 });
  expect(await stored()).toEqual(expected);
  expect((await runCli(['operations', 'enable', 'Weekly'], options)).stderr).toContain('unknown operation');
});

test('a format of the user fills a table of the catalogue, and comes before the others', async () => {
  const { url, write, options } = await open();
  write('operations/files/my-deals.mjs', [
    "import { defineFormat } from 'eod-pipeline/operations';",
    'export default defineFormat({',
    "  name: 'my-deals', files: ['deals_DDMMYYYY.csv'], dataSet: 'GetBulkDeals', exchange: 'NSE',",
    "  marks: ['TICKER', 'WHO', 'SHARES'], day: { field: 'DealDate' },",
    "  columns: { TICKER: 'ScripId', WHO: 'ClientName', SIDE: 'DealType', SHARES: 'Qty', PRICE: 'Price' },",
    "  values: { DealType: { BOUGHT: 'B' } },",
    '});',
  ]);
  write('deals_29082025.csv', ['TICKER,WHO,SIDE,SHARES,PRICE', 'ACC,A FUND,Bought,100,1800.50']);
  const { json } = await runJson<ImportReport>(['import', 'deals_29082025.csv'], options);
  expect(json).toMatchObject({ state: 'completed', inserted: 1 });
  expect(
    await query(url, 'select deal_date::text, symbol, client_name, deal_type from market.bulk_deals'),
  ).toEqual([{ deal_date: '2025-08-29', symbol: 'ACC', client_name: 'A FUND', deal_type: 'B' }]);
});

test('a format that cannot be used is named, and the others are', async () => {
  const { cwd, write, options } = await open();
  write('operations/files/broken.mjs', ['export default { name: "x" };']);
  write('operations/files/Half.mjs', [
    "import { defineFileSet, defineFormat, defineTable, text } from 'eod-pipeline/operations';",
    "const table = defineTable({ name: 'half', comment: 'x', key: ['exchange', 'a'], fields: [text('A', 'a', 'A.', { required: true })] });",
    'export default defineFormat({',
    "  name: 'half', files: ['half.csv'], exchange: 'NSE', marks: ['A'], columns: { A: 'B' },",
    "  dataSet: defineFileSet({ name: 'Half', summary: 'x', shapes: [{ table, has: ['A'], dated: false, fullSet: 'none' }] }),",
    '});',
  ]);
  const checked = await runCli(
    ['operations', 'check', 'operations/files/broken.mjs', 'operations/files/Half.mjs'],
    options,
  );
  expect(checked.code).toBe(1);
  const found = checked.stdout.replace(/\s+/g, ' ');
  expect(found).toContain('it declares no format: export what defineFormat({…}) returns');
  expect(found).toContain('columns: A is B, which is no field of Half');
  write('in/bh011220.csv', ['SYMBOL,SERIES,SECURITY,HIGH/LOW', 'ACC,EQ,ACC,H']);
  expect(await runCli(['import', 'in'], options)).toMatchObject({ code: 0 });
  expect(existsSync(join(cwd, 'in/bh011220.csv'))).toBe(true);
  const { stdout } = await runCli(['doctor'], options);
  expect(stdout).toContain('broken.mjs');
});

test('a CSV file whose name could be that of an operation is a response, unless --file says otherwise', async () => {
  const { write, options } = await open();
  write('Weekly.csv', WEEKLY);
  const draft = async (...flags: string[]) =>
    (await runCli(['operations', 'draft', 'Weekly.csv', '--print', ...flags], options)).stdout;
  expect(await draft()).toContain('defineOperation({');
  expect(await draft('--file')).toContain('defineFormat({');
  write('PE_161225.csv', WEEKLY);
  const dated = await runCli(['operations', 'draft', 'PE_161225.csv', '--print'], options);
  expect(dated.stdout).toContain("files: ['PE_DDMMYY.csv']");
});

test('a file with a title is not drafted with its title as the header', async () => {
  const { cwd, write, options } = await open();
  write('CM_52_wk_16122025.csv', [
    '"Disclaimer - adjusted for splits, bonus"',
    '"Effective for 16-Dec-2025"',
    ...WEEKLY,
  ]);
  expect(await runCli(['operations', 'draft', 'CM_52_wk_16122025.csv'], options)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('it has 2 lines before its header: delete what is before it'),
  });
  expect(existsSync(join(cwd, 'operations'))).toBe(false);
});
