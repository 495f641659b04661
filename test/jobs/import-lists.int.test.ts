import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { migrateDatabase } from '../../src/load/migrate.ts';
import { cellsOf, csvOf, fixture, importInto, openStore, query, test } from './import-support.ts';
import { replay } from './replay-support.ts';

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

test('lists and derivatives are loaded to the row, in any order; what they fill is created; twice changes nothing', async ({
  context,
}) => {
  const created: string[] = [];
  const report = await importInto(context, FILES, { onPrepared: ({ name }) => created.push(name) });
  expect(report).toMatchObject({ state: 'completed', rejected: 0, left: 0 });
  expect(created.sort()).toEqual(['GetBhavCopyFO', 'GetFIIDII']);
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
  const covered = await query<{ operation: string; day: string }>(
    context,
    `select operation, day::text from etl.coverage where state = 'loaded' order by 1, 2`,
  );
  expect(covered).toEqual([
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
  // This process has a registry for one database, and takes the tables for created.
  await migrateDatabase(other.db, other.config, { names: created, to: 'filled', by: 'test' });
  for (const file of FILES.toReversed()) await importInto(other, [file]);
  expect(await stored(other)).toEqual(first);
  await replay(other, {}, { rebuild: true });
  expect(await stored(other)).toEqual(first);
}, 180_000);
