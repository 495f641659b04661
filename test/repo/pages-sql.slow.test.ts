import { readFileSync } from 'node:fs';
import type { QueryResult } from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';

/** The SQL of a page, block by block. */
const blocksOf = (name: string) =>
  [
    ...readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8').matchAll(
      /```sql\n([\s\S]*?)```/g,
    ),
  ].map(([, sql]) => sql as string);

let pipeline: Pipeline;

/** Runs SQL and takes it back. */
async function tried(sql: string): Promise<QueryResult> {
  const client = await pipeline.db.pool.connect();
  try {
    await client.query('begin');
    return await client.query(sql);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

beforeAll(async () => {
  const sandbox = { instrumentsPerExchange: 30 };
  pipeline = await openPipeline({ sandbox, clock: { now: () => Date.parse('2025-10-31T23:30:00+05:30') } });
  const run = backfill({
    from: '2025-10-20',
    to: '2025-10-31',
    exchanges: ['BSE', 'NSE'],
    operations: ['GetBhavCopyCM'],
  });
  expect((await runToEnd(pipeline, run)).state).toBe('completed');
}, 120_000);

describe('docs/performance.md', () => {
  const [highs = '', index = '', ...others] = blocksOf('performance.md');

  test('finds the shares whose high is that of 52 weeks, as the obvious query does', async () => {
    const obvious = `select t.symbol, t.series, t.high_price from market.bhavcopy_cm t
      where t.exchange = 'BSE' and t.trade_date = '2025-10-31' and t.high_price = (
        select max(y.high_price) from market.bhavcopy_cm y
         where y.exchange = t.exchange and y.symbol = t.symbol and y.series = t.series
           and y.trade_date > date '2025-10-31' - 364 and y.trade_date <= '2025-10-31')`;
    const sorted = (sql: string) => `select * from (${sql.replace(/;\s*$/, '')}) q order by symbol, series`;
    const { rows } = await tried(sorted(highs));
    expect(rows.length).toBeGreaterThan(0);
    expect(rows).toEqual((await tried(sorted(obvious))).rows);
    expect(rows.length).toBeLessThan(
      (await tried("select from market.bhavcopy_cm where exchange = 'BSE' and trade_date = '2025-10-31'"))
        .rows.length,
    );
  });

  test('has an index that can be made', async () => {
    await tried(index);
    expect(others).toEqual([]);
  });
});

test('the SQL of docs/adjusted-prices.md names columns that exist', async () => {
  const blocks = blocksOf('adjusted-prices.md');
  expect(blocks).toHaveLength(1);
  for (const sql of blocks) expect((await tried(sql)).fields.length).toBeGreaterThan(1);
});

test('the SQL of docs/analysts.md names columns that exist', async () => {
  const blocks = blocksOf('analysts.md')
    .filter((sql) => !/\.parquet'|^attach /m.test(sql))
    .map((sql) =>
      sql.replace(/\$__timeFilter\((\w+)\)/, "$1 between '2025-10-01T00:00:00Z' and '2025-10-31T23:59:59Z'"),
    );
  expect(blocks.length).toBeGreaterThan(8);
  for (const sql of blocks) expect((await tried(sql)).fields.length, sql).toBeGreaterThan(1);
});

test('the report of docs/history.md is the same when it is made again by the number of its state', async () => {
  // The others are those of a copy that follows, which followers.slow.test.ts runs.
  const [block = '', ...others] = blocksOf('history.md').filter((text) => text.includes('812'));
  expect(others).toEqual([]);
  const { rows: states } = await tried('select market.state() as state');
  const sql = block.replaceAll('812', String(states[0]?.state));
  expect(sql).not.toBe(block);
  // Several statements have as many results.
  const results = (await pipeline.db.pool.query(sql)) as unknown as QueryResult[];
  const [, state, report, , again] = results.map(({ rows }) => rows);
  expect(state).toEqual([{ state: states[0]?.state }]);
  expect(Number(report?.[0]?.sum)).toBeGreaterThan(0);
  expect(again).toEqual(report);
});
