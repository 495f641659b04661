import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { tables } from '../../src/operations/registry.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';

const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };
const RANGE = { from: '2025-08-29', to: '2025-09-12' };

/** The page's SQL, each block with what its first line says it is about. */
const blocks = [
  ...readFileSync(new URL('../../docs/analysts.md', import.meta.url), 'utf8').matchAll(
    /```sql\n-- ([^\n]*)\n([\s\S]*?);\n```/g,
  ),
].map(([, title, sql]) => ({ title: title as string, sql: sql as string }));
const named = tables.flatMap((table) =>
  blocks.filter(({ title }) => title.includes(table.name)).map((block) => ({ ...block, table })),
);
/** A block may speak of two tables alike: its SQL is of the first. */
const joins = named.map(({ title, sql, table }) => ({
  title,
  table,
  sql: sql.replace(/from market\.\w+/, `from market.${table.name}`),
}));

/** The tables of the first release that name an instrument. A table added later may have a block, but needs none. */
const JOINED = [
  'bhavcopy_cm',
  'circuit_breakers',
  'consolidated_pledge',
  'corporate_actions',
  'financial_ratio_facts',
  'financial_ratios',
  'sectoral_classification',
  'series_changes',
  'top_gainers_losers',
];
let pipeline: Pipeline;

beforeAll(async () => {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 150 });
  pipeline = await openPipeline({ sourceUrl: sandbox.url, clock, settings: { EOD_INSTRUMENT_LIMIT: '3' } });
  const both = { ...RANGE, exchanges: ['BSE', 'NSE'] };
  expect((await runToEnd(pipeline, backfill(both))).state).toBe('completed');
  await sandbox.close();
  await openSandbox({
    clock,
    instrumentsPerExchange: 150,
    port: sandbox.port,
    behaviour: { shapes: 'declared' },
  });
  const operations = ['GetConsolidatedPledge', 'GetFinRatioEOD'];
  expect((await runToEnd(pipeline, backfill({ ...both, operations, force: true }))).state).toBe('completed');
});

test('docs/analysts.md joins every table that names an instrument', () => {
  const found = joins.map(({ table }) => table.name);
  expect(found).toEqual(expect.arrayContaining(JOINED));
  expect(new Set(found).size).toBe(found.length);
});

describe.each(joins)('$table.name', ({ table, sql }) => {
  test('each row is joined to exactly one instrument', async () => {
    const { pool } = pipeline.db;
    const count = async (text: string) =>
      Number((await pool.query<{ n: string }>(`select count(*) as n from ${text}`)).rows[0]?.n);
    const rows = await count(`market.${table.name}`);
    expect(rows).toBeGreaterThan(0);
    expect(await count(`(${sql}) as joined`)).toBe(rows);
    expect(await count(`(select distinct ${table.key.join(', ')} from (${sql}) as joined) as keys`)).toBe(
      rows,
    );
    expect(
      await count(`(${sql}) as joined join market.instruments i on i.instrument_id = joined.instrument`),
    ).toBe(rows);
  });
});

test('the other queries of the page response', async () => {
  const others = blocks.filter(({ title }) => !joins.some((join) => join.title === title));
  expect(others).toHaveLength(2);
  for (const { title, sql } of others) {
    expect((await pipeline.db.pool.query(sql)).rows.length, title).toBeGreaterThan(5);
  }
});
