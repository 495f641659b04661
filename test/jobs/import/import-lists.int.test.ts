import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { addDays } from '../../../src/core/days.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { forAllAsync } from '../../support/for-all.ts';
import {
  cellsOf,
  csvOf,
  fixture,
  importInto,
  newFile,
  openStore,
  query,
  test,
} from '../../support/import-support.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { replayAnew } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { zip } from '../../support/zip.ts';

const FILES = [
  'bh011220.csv',
  'bh021220.csv',
  'ListOfScrips.csv',
  'ind_nifty500list.csv',
  'nse_industry_classification.csv',
  'series_change.csv',
  'corporate-pledgedata.json',
  'fao_participant_oi_19082022.csv',
  'fo13JUN2022bhav.csv.zip',
].map((name) => fixture(`lists/${name}`));

const TABLES = [
  'circuit_breakers',
  'sectoral_classification',
  'industry_classification',
  'series_changes',
  'company_pledges',
  'participant_positions',
  'bhavcopy_fo',
];

/** What is stored, without what differs from load to load. */
async function stored(context: Context, tables: readonly string[] = TABLES) {
  const all: Record<string, unknown> = {};
  for (const table of tables) {
    all[table] = await query(
      context,
      `select to_jsonb(t) - '{first_loaded_at,last_changed_at,revision,run_id,load_id}'::text[] as row
         from market.${table} t order by 1`,
    );
  }
  return all;
}

test('lists and derivatives are loaded to the row, in any order; twice changes nothing', async ({
  context,
}) => {
  const report = await importInto(context, FILES);
  expect(report).toMatchObject({ state: 'completed', rejected: 0, left: 0 });
  const lines = (name: string) => cellsOf(fixture(`lists/${name}`)).slice(1);
  const bands = [...lines('bh011220.csv'), ...lines('bh021220.csv')];
  const fo = (await csvOf(fixture('lists/fo13JUN2022bhav.csv.zip'))).toString().trim().split('\n').slice(1);
  const sum = (at: number) => fo.reduce((sum, line) => sum + Number(line.split(',')[at]), 0);
  const [counts] = await query(
    context,
    `select (select count(*) from market.circuit_breakers)::int as bands,
            (select count(*) from market.circuit_breakers where band = 'L')::int as low,
            (select count(*) from market.sectoral_classification where exchange = 'BSE')::int as scrips,
            (select count(*) from market.sectoral_classification where exchange = 'NSE')::int as constituents,
            (select count(*) from market.industry_classification)::int as industries,
            (select count(*) from market.company_pledges)::int as pledges,
            (select sum(depository_pledged_shares) from market.company_pledges)::float8 as pledged,
            (select sum(total_long) from market.participant_positions)::float8 as long,
            (select count(*) from market.bhavcopy_fo where exchange = 'NFO')::int as contracts,
            (select sum(traded_quantity) from market.bhavcopy_fo)::float8 as quantity,
            (select sum(open_interest) from market.bhavcopy_fo)::float8 as interest,
            (select sum(turnover) / 1e5 from market.bhavcopy_fo)::float8 as lakhs`,
  );
  const pledges = (
    JSON.parse(readFileSync(fixture('lists/corporate-pledgedata.json'), 'utf8')) as {
      data: { numSharesPledged: string }[];
    }
  ).data;
  expect(counts).toEqual({
    bands: bands.length,
    low: bands.filter(([, , , band]) => band === 'L').length,
    scrips: lines('ListOfScrips.csv').length,
    constituents: lines('ind_nifty500list.csv').length,
    industries: lines('nse_industry_classification.csv').length,
    pledges: pledges.length,
    pledged: pledges.reduce((sum, { numSharesPledged }) => sum + Number(numSharesPledged), 0),
    long: lines('fao_participant_oi_19082022.csv')
      .slice(1)
      .reduce((sum, cells) => sum + Number(cells.at(-2)), 0),
    contracts: fo.length,
    quantity: sum(10),
    interest: sum(12),
    lakhs: expect.closeTo(sum(11), 2),
  });
  // A day before all data names no instrument and begins no run.
  expect(report.from > '2000').toBe(true);
  expect(await query(context, `select from market.instruments where first_seen < '2000-01-01'`)).toEqual([]);
  const coverageRows = await query<{ operation: string; day: string }>(
    context,
    `select operation, day::text from etl.coverage where state = 'loaded' order by 1, 2`,
  );
  expect(coverageRows).toEqual([
    { operation: 'GetBhavCopyFO', day: '2022-06-13' },
    { operation: 'GetCircuitBreakers', day: '2020-12-01' },
    { operation: 'GetCircuitBreakers', day: '2020-12-02' },
    { operation: 'GetFIIDII', day: '2022-08-19' },
  ]);
  const first = await stored(context);
  const again = await importInto(context, FILES, { force: true });
  expect(again).toMatchObject({ state: 'completed', inserted: 0, updated: 0, withdrawn: 0 });
  expect(await stored(context)).toEqual(first);
  const other = await openStore();
  for (const file of FILES.toReversed()) await importInto(other, [file]);
  expect(await stored(other)).toEqual(first);
  await replayAnew(other);
  expect(await stored(other)).toEqual(first);
}, 180_000);

test('the daily archive of NSE fills what it can, and says what it leaves out', async ({ context }) => {
  const folder = temporaryFolder();
  const archive = join(folder, 'PR011220.zip');
  const bands = readFileSync(fixture('lists/bh011220.csv'));
  writeFileSync(
    archive,
    zip([
      { name: 'bh011220.csv', text: bands },
      { name: 'HL011220.csv', text: 'SECURITY,NEW,PREVIOUS,NEW_STATUS\nACME LTD,120.00,110.00,H\n' },
      {
        name: 'Bc011220.csv',
        text: 'SERIES,SYMBOL,SECURITY,RECORD_DT,BC_STRT_DT,BC_END_DT,EX_DT,ND_STRT_DT,ND_END_DT,PURPOSE\nEQ,ACC,ACC Ltd, , , ,02/12/2020, , ,BONUS 1:1\nN1,ACC,ACC Ltd, , , , , , ,REDEMPTION\n',
      },
      {
        name: 'Gl011220.csv',
        text: 'GAIN_LOSS,SECURITY,CLOSE_PRIC,PREV_CL_PR,PERCENT_CG\nG,ACC,1549,1540,0.58\n',
      },
      { name: 'Readme.txt', text: 'x' },
    ]),
  );
  writeFileSync(
    join(folder, 'fo_secban_31072026.csv'),
    'Securities in Ban For Trade Date 31-JUL-2026: NIL\n',
  );
  writeFileSync(
    join(folder, 'block.csv'),
    'Date,Symbol,Security Name,Client Name,Buy/Sell,Quantity Traded,Trade Price / Wght. Avg. Price\nNO RECORDS,,,,,,\n',
  );
  const before = readFileSync(archive);
  const report = await importInto(context, [folder]);
  expect(report).toMatchObject({ state: 'completed', left: 0 });
  const [file, block, ban] = report.files;
  expect(block).toMatchObject({ state: 'skipped', error: 'has no line that is stored' });
  expect(file?.formats.map(({ format, records, passedOver }) => [format, records, passedOver])).toEqual([
    ['nse-price-bands', 204, 0],
    ['nse-highs-lows', 1, 0],
    ['nse-actions-daily', 1, 1],
  ]);
  expect(file?.leftOut).toMatchObject([{ form: 'GAIN_LOSS,SECURITY,CLOSE_PRIC,PREV_CL_PR,PERCENT_CG' }]);
  expect(ban).toMatchObject({ state: 'loaded', rows: 0, sessions: [{ exchange: 'NSE', day: '2026-07-31' }] });
  expect(readFileSync(archive).equals(before)).toBe(true);
  const again = await importInto(context, [folder]);
  expect(again.files.map(({ state }) => state)).toEqual(['skipped', 'skipped', 'skipped']);
  expect(await query(context, `select count(*)::int from market.circuit_breakers`)).toEqual([{ count: 204 }]);
  expect(await query(context, `select scrip_name, band, new_price from market.new_highs_lows`)).toEqual([
    { scrip_name: 'ACME LTD', band: 'H', new_price: '120.00' },
  ]);
  expect(
    await query(context, `select state from etl.coverage where operation = 'GetBannedSecurities'`),
  ).toEqual([{ state: 'empty' }]);
});

test('a list in an archive that lists nothing does not stop the others', async ({ context }) => {
  const archive = join(temporaryFolder(), 'PR170521.zip');
  const actions =
    'SERIES,SYMBOL,SECURITY,RECORD_DT,BC_STRT_DT,BC_END_DT,EX_DT,ND_STRT_DT,ND_END_DT,PURPOSE\n';
  writeFileSync(
    archive,
    zip([
      { name: 'Bc160521.csv', text: actions },
      { name: 'Bc170521.csv', text: `${actions}EQ,ACC,ACC Ltd, , , ,18/05/2021, , ,DIVIDEND - RS 14\n` },
      { name: 'bh170521.csv', text: 'SYMBOL,SERIES,SECURITY,HIGH/LOW,INDEX FLAG\n' },
    ]),
  );
  const report = await importInto(context, [archive]);
  expect(report).toMatchObject({ state: 'completed', files: [{ state: 'loaded', rows: 1, error: null }] });
  const states = `select state from etl.coverage where operation = 'GetCircuitBreakers' and day = '2021-05-17'`;
  expect(await query(context, states)).toEqual([{ state: 'empty' }]);
});

test('a pledge has the symbol of its company, unless several have the name', async ({ context }) => {
  await importInto(context, [
    fixture('lists/corporate-pledgedata.json'),
    fixture('lists/ind_nifty500list.csv'),
  ]);
  const rows = await query<{ company_name: string; symbol: string | null }>(
    context,
    `select company_name, symbol from market.company_pledge_symbols where company_name ~ '^(ABB|Future E|20 M)' order by 1`,
  );
  expect(rows).toEqual([
    // No other file names it.
    { company_name: '20 Microns Limited', symbol: null },
    { company_name: 'ABB India Limited', symbol: 'ABB' },
    { company_name: 'Future Enterprises Limited', symbol: null },
    { company_name: 'Future Enterprises Limited', symbol: null },
  ]);
});

/** How names write a day. */
const DAY_NAMES = [
  (y: string, m: string, d: string) => `${y}${m}${d}_231051`,
  (y: string, m: string, d: string) => `${d}${m}${y}`,
  (y: string, m: string, d: string) => `${d}-${m}-${y}`,
];

const LISTS = {
  industry_classification: {
    name: 'industries',
    lines: (facts: readonly Fact[]) => [
      'BASIC_IND_CODE,BASIC INDUSTRY',
      ...facts.map(({ key, value }) => `${key},${value}`),
    ],
    select: 'select basic_industry_code as key, basic_industry as value from market.industry_classification',
  },
  symbol_changes: {
    name: 'symbolchange',
    lines: (facts: readonly Fact[]) => [
      'SM_NAME,SM_KEY_SYMBOL,SM_NEW_SYMBOL,SM_APPLICABLE_FROM',
      ...facts.map(({ key, value }) => `${value},${key},NEW,01-JAN-2020`),
    ],
    select: 'select old_symbol as key, company_name as value from market.symbol_changes',
  },
  sectoral_classification: {
    name: 'ind_nifty100list',
    lines: (facts: readonly Fact[]) => [
      'Company Name,Industry,Symbol,Series,ISIN Code',
      ...facts.map(({ key, value }) => `C,${value},${key},EQ,${key}`),
    ],
    // The day of a list is that of its rows.
    select:
      'select distinct on (isin) isin as key, sector as value from market.sectoral_classification order by isin, allotted_from desc',
  },
} as const;

/** Lists of several days, each imported at least once, in any order. */
const LISTS_IN_ANY_ORDER = fc
  .array(
    fc.uniqueArray(
      fc.record({ key: fc.constantFrom('A', 'B', 'C', 'D'), value: fc.integer({ min: 1, max: 9 }) }),
      { minLength: 1, selector: ({ key }) => key },
    ),
    { minLength: 3, maxLength: 5 },
  )
  .chain((lists) => {
    const all = lists.map((_, at) => at);
    return fc.record({
      lists: fc.constant(lists),
      days: fc.uniqueArray(fc.integer({ min: 0, max: 9_000 }), {
        minLength: lists.length,
        maxLength: lists.length,
      }),
      written: fc.constantFrom(...DAY_NAMES),
      imports: fc
        .tuple(fc.shuffledSubarray(all, { minLength: all.length }), fc.array(fc.constantFrom(...all)))
        .map(([first, again]) => [...first, ...again]),
      isOneImport: fc.boolean(),
    });
  });

test.for(Object.keys(LISTS) as (keyof typeof LISTS)[])(
  'of lists of several days that fill %s the latest counts, in whatever order and however often they are imported',
  { timeout: 400_000 },
  async (table) => {
    const { name, lines, select } = LISTS[table];
    await forAllAsync(
      [LISTS_IN_ANY_ORDER],
      { seed: 3, numRuns: 2 },
      async ({ lists, days, written, imports, isOneImport }) => {
        const context = await openStore();
        const sorted = days.toSorted((a, b) => a - b);
        const files = lists.map((facts, at) => {
          const [y = '', m = '', d = ''] = addDays('2001-01-01', sorted[at] as number).split('-');
          return newFile(`${name}_${written(y, m, d)}.csv`, lines(facts));
        });
        if (isOneImport) await importInto(context, files);
        for (const at of imports) {
          const report = await importInto(context, [files[at] as string], { force: true });
          expect(report).toMatchObject({ state: 'completed', rejected: 0 });
        }
        const expected = new Map(lists.flat().map(({ key, value }) => [key, String(value)]));
        const stored = async () =>
          new Map((await query<Fact>(context, select)).map(({ key, value }) => [key, value]));
        expect(await stored()).toEqual(expected);
        await replayAnew(context);
        expect(await stored()).toEqual(expected);
      },
    );
  },
);

test.runIf(isSlowLayer)(
  'any number of earlier lists may follow, and a list without a day counts when it is imported',
  async ({ context }) => {
    const list = (name: string, value: number | string) =>
      newFile(name, LISTS.industry_classification.lines([{ key: 'A', value: value as number }]));
    const stored = () => query(context, LISTS.industry_classification.select);
    const counts = async (file: string, value: string) => {
      expect(await importInto(context, [file])).toMatchObject({ state: 'completed' });
      expect(await stored()).toEqual([{ key: 'A', value }]);
    };
    await counts(list('i_20251002.csv', 'last'), 'last');
    for (const day of [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 9, 8, 7, 6, 5, 4, 3]) {
      await counts(list(`i_202506${String(day).padStart(2, '0')}.csv`, day), 'last');
    }
    await counts(list('i.csv', 'undated'), 'undated');
    await counts(list('i_20250701.csv', 'late'), 'undated');
    await counts(list('i (1).csv', 'another'), 'another');
  },
);

/** What two formats say of the same contracts, or companies, on one day. */
interface Fact {
  readonly key: string;
  readonly value: number;
}

const FACTS = fc.uniqueArray(
  fc.record({ key: fc.constantFrom('A', 'B', 'C'), value: fc.constantFrom(1, 2, 3) }),
  { minLength: 1, selector: ({ key }) => key },
);

const writtenDay = (day: string) => {
  const [year, month, date] = day.split('-');
  return `${date}-${['Jan', 'Feb', 'Mar'][Number(month) - 1]}-${year}`;
};

/** Pairs of formats of one table, the better one first: the lines of a file, and the columns that only it has. */
const PAIRS = {
  bhavcopy_fo: {
    better: (day: string, facts: readonly Fact[]) => [
      'TradDt,Sgmt,Src,TckrSymb,SctySrs,XpryDt,StrkPric,OptnTp,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,OpnIntrst,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,NewBrdLotQty',
      ...facts.map(
        ({ key, value }) =>
          `${day},FO,NSE,${key},,2025-06-26,,,9,9,9,${value},9,9,75,${value},123456.78,5,75`,
      ),
    ],
    poorer: (day: string, facts: readonly Fact[]) => [
      'INSTRUMENT,SYMBOL,EXPIRY_DT,STRIKE_PR,OPTION_TYP,OPEN,HIGH,LOW,CLOSE,SETTLE_PR,CONTRACTS,VAL_INLAKH,OPEN_INT,CHG_IN_OI,TIMESTAMP,',
      ...facts.map(
        ({ key, value }) =>
          `FUTSTK,${key},26-Jun-2025,0,XX,9,9,9,${value},9,${value},1.23,75,0,${writtenDay(day)},`,
      ),
    ],
    names: ['x.csv', 'fo.csv'],
    onlyBetter: ['board_lot_quantity', 'trade_count'],
  },
  company_pledges: {
    better: (day: string, facts: readonly Fact[]) => [
      JSON.stringify({
        data: facts.map(({ key, value }) => ({
          broadcastDt: `${writtenDay(day)} 16:32:07`,
          comName: key,
          shp: '31-Dec-2024',
          numSharesPledged: `${value}`,
          totIssuedShares: '9',
        })),
      }),
    ],
    poorer: (day: string, facts: readonly Fact[]) => [
      '"NAME OF COMPANY","TOTAL NO. OF ISSUED SHARES A+B+C","NO. OF SHARES PLEDGED IN THE DEPOSITORY SYSTEM NO. OF SHARES PLEDGED","BROADCAST DATE"',
      ...facts.map(({ key, value }) => `"${key}","9","${value}","${writtenDay(day)} 16:32:07"`),
    ],
    names: ['x.json', 'x.csv'],
    onlyBetter: ['shareholding_date'],
  },
} as const;

const DAY = fc.integer({ min: 2, max: 27 });

test.for(Object.keys(PAIRS) as (keyof typeof PAIRS)[])(
  'of two formats of %s the poorer takes nothing away, in whatever order they are imported',
  { timeout: 120_000 },
  async (table, { context }) => {
    const { better, poorer, names, onlyBetter } = PAIRS[table];
    let runs = 0;
    await forAllAsync([DAY, FACTS, FACTS], { seed: 7, numRuns: 2 }, async (date, first, second) => {
      runs += 1;
      const [firstDay, secondDay] = ['01', '02'].map(
        (month) => `20${10 + runs}-${month}-${String(date).padStart(2, '0')}`,
      ) as [string, string];
      const filesOf = (day: string) => [
        newFile(names[0], better(day, first)),
        newFile(names[1], poorer(day, second)),
      ];
      for (const file of filesOf(firstDay))
        expect(await importInto(context, [file])).toMatchObject({ state: 'completed' });
      for (const file of filesOf(secondDay).toReversed()) await importInto(context, [file]);
      const rows = (day: string) =>
        query<Record<string, unknown>>(
          context,
          `select to_jsonb(t) - '{trade_date,broadcast_at,first_loaded_at,last_changed_at,revision,run_id,load_id}'::text[] as row
             from market.${table} t where trade_date = '${day}' order by 1`,
        );
      const stored = await rows(firstDay);
      expect(await rows(secondDay)).toEqual(stored);
      const kept = stored.map(({ row }) => row as Record<string, unknown>);
      for (const column of onlyBetter)
        expect(kept.filter((row) => row[column] !== null)).toHaveLength(first.length);
    });
  },
);
