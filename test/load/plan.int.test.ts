import type { PoolClient } from 'pg';
import { expect, test } from 'vitest';
import {
  type ObservedAliasSql,
  observedAliasSql,
} from '../../src/load/market/instruments/observed-aliases-sql.ts';
import { mergeSql } from '../../src/load/market/merge-sql.ts';
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

interface Looked {
  readonly merge: number;
  readonly withdraw: number;
  readonly observe: number;
}

/** Loads what is stored of a day once more, and undoes it; says how many rows that meant looking at. */
async function loadAgain(client: PoolClient, day: string, price: string): Promise<Looked> {
  const { createStage, merge, withdraw } = mergeSql(bhavcopy);
  const columns = bhavcopy.fields.map((field) => field.column).join(', ');
  await client.query(createStage);
  await client.query('begin');
  await client.query(
    `insert into pg_temp.stage_bhavcopy_cm (_ord, ${columns})
     select row_number() over (), ${columns} from market.bhavcopy_cm where trade_date = $1`,
    [day],
  );
  await client.query('update pg_temp.stage_bhavcopy_cm set close_price = $1', [price]);
  const looked = async (statement: string, values: unknown[]) => {
    const explained = await client.query(`explain (analyze, format json) ${statement}`, values);
    return rowsLookedAt(explained.rows[0]['QUERY PLAN'][0].Plan);
  };
  const rows = {
    merge: await looked(merge, [1, 1]),
    withdraw: await looked(withdraw, [1, 'NSE', 0.1, 5, false, new Date().toISOString(), [day], []]),
    observe: await looked((observedAliasSql(bhavcopy)[0] as ObservedAliasSql).observe, ['NSE', 1, day, day]),
  };
  await client.query('rollback');
  return rows;
}

/**
 * The statistics never know the day that is being loaded. A planner that took it to be empty once
 * compared each of its records with each of its rows: minutes instead of a second.
 */
test('a load looks each stored row up a few times, though the statistics know nothing of its day', async () => {
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
    for (const price of ['10.5', '11']) {
      const { merge, withdraw, observe } = await loadAgain(client, '2025-08-29', price);
      expect(merge).toBeLessThan(30 * RECORDS);
      expect(withdraw).toBeLessThan(30 * RECORDS);
      expect(observe).toBeLessThan(30 * RECORDS);
    }
  } finally {
    client.release();
  }
});
