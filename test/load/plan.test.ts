import type { PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { mergeSql } from '../../src/load/merge-sql.ts';
import { bhavcopy, bhavRow, loadBhav, openStore } from './support.ts';

const RECORDS = 2_000;

interface PlanNode {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows all steps of a plan have looked at together. */
function rowsLookedAt(node: PlanNode): number {
  const each =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
  return (node.Plans ?? []).reduce((sum, step) => sum + rowsLookedAt(step), each * node['Actual Loops']);
}

/**
 * Merges what is stored of a day once more, or withdraws what is not listed, and undoes it; says how
 * many rows that meant looking at.
 */
async function loadAgain(
  client: PoolClient,
  { statement, day, price }: { statement: 'merge' | 'withdraw'; day: string; price: string },
): Promise<number> {
  const { createStage, [statement]: text } = mergeSql(bhavcopy);
  const columns = bhavcopy.fields.map((field) => field.column).join(', ');
  await client.query(createStage);
  await client.query('begin');
  await client.query(
    `insert into pg_temp.stage_bhavcopy_cm (ord, ${columns})
     select row_number() over (), ${columns} from market.bhavcopy_cm where trade_date = $1`,
    [day],
  );
  await client.query('update pg_temp.stage_bhavcopy_cm set close_price = $1', [price]);
  const values = statement === 'merge' ? [1] : [1, 'NSE', '0.1', 5, day, day];
  const explained = await client.query(`explain (analyze, format json) ${text}`, values);
  await client.query('rollback');
  return rowsLookedAt(explained.rows[0]['QUERY PLAN'][0].Plan);
}

/**
 * The statistics never know the day that is being loaded. A planner that took it to be empty once
 * compared each of its records with each of its rows: minutes instead of a second.
 */
test('a load looks each stored row up once, though the statistics know nothing of its day', async () => {
  const session = (day: string) =>
    Array.from({ length: RECORDS }, (_, at) => bhavRow({ symbol: `S${at}`, trade_date: day }));
  const store = await openStore();
  for (const day of ['2025-08-27', '2025-08-28']) await loadBhav(store, session(day));
  // As an analyst might: an index that looks perfect for one empty day.
  await store.pool.query('create index on market.bhavcopy_cm (trade_date)');
  await store.pool.query('analyze market.bhavcopy_cm');
  await loadBhav(store, session('2025-08-29'));
  const client = await store.pool.connect();
  try {
    const day = '2025-08-29';
    for (const price of ['10.5', '11']) {
      expect(await loadAgain(client, { statement: 'merge', day, price })).toBeLessThan(30 * RECORDS);
    }
    expect(await loadAgain(client, { statement: 'withdraw', day, price: '11' })).toBeLessThan(30 * RECORDS);
  } finally {
    client.release();
  }
});
