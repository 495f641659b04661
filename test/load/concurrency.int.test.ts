import { beforeAll, describe, expect, test } from 'vitest';
import type { Row, TableDefinition } from '../../src/declaration/table.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import type { Database } from '../../src/postgres/database.ts';
import { keepSessionLock } from '../../src/postgres/session-lock.ts';
import { shuffled } from '../support/shuffled.ts';
import { waitFor } from '../support/wait-for.ts';
import { bhavRow, load, loadBhav, newRun, openPool, openStore } from './support.ts';

const ratios = operationNamed('GetFinRatioEOD').shapes[0].table as TableDefinition;

const DAYS = ['2025-09-08', '2025-09-09', '2025-09-10', '2025-09-11'];
const ROUNDS = 15;

describe('loads at the same time', () => {
  let store: Database;
  beforeAll(async () => {
    store = await openStore(undefined, 8);
  });

  test('of the same keys in any order never deadlock, and the newest ends up in the table', async () => {
    const runId = await newRun(store);
    const keys = DAYS.flatMap((trade_date) =>
      ['A', 'B', 'C', 'D', 'E'].map((symbol) => ({ symbol, trade_date })),
    );
    for (let round = 0; round < ROUNDS; round += 1) {
      const loads = Array.from({ length: 8 }, (_, n) => {
        const saved = new Date(Date.UTC(2025, 8, 11, 16, round, n)).toISOString();
        const coverage = DAYS.map(
          (day) => ({ day, instrument: '', variant: '', state: 'loaded', records: 5 }) as const,
        );
        const rows = keys.map(
          (key): Row => bhavRow({ ...key, close_price: `${round}.${n}`, source_saved_at: saved }),
        );
        return loadBhav(store, shuffled(rows, round * 8 + n + 1), {
          runId,
          coverage: shuffled(coverage, round + n),
        });
      });
      for (const counts of await Promise.all(loads)) expect(counts?.fetched).toBe(keys.length);
      const result = await store.pool.query(
        'select distinct close_price::text as price from market.bhavcopy_cm',
      );
      expect(result.rows).toEqual([{ price: `${round}.7` }]);
    }
    const totals = await store.pool.query<{ inserted: number; updated: number; revisions: number }>(
      `select (select sum(inserted)::int from etl.windows) as inserted,
              (select sum(updated)::int from etl.windows) as updated,
              (select sum(revision)::int from market.bhavcopy_cm) as revisions`,
    );
    const { inserted, updated, revisions } = totals.rows[0] ?? { inserted: 0, updated: 0, revisions: 0 };
    expect(inserted).toBe(keys.length);
    expect(revisions).toBe(inserted + updated);
  });

  test('that need the same new partition, from several processes, make it once', async () => {
    const pools = Array.from({ length: 6 }, () => openPool(store.url, 2));
    const runId = await newRun(store);
    const loads = pools.flatMap((pool, n) =>
      ['2011', '2012', '2013'].map((year) =>
        loadBhav(pool, [bhavRow({ symbol: `P${n}`, trade_date: `${year}-06-01` })], { runId }),
      ),
    );
    for (const counts of await Promise.all(loads)) expect(counts).toMatchObject({ inserted: 1 });
    const result = await store.pool.query(
      `select tableoid::regclass::text as partition, count(*)::int as rows from market.bhavcopy_cm
        where symbol like 'P%' group by 1 order by 1`,
    );
    expect(result.rows).toEqual(
      [2011, 2012, 2013].map((year) => ({ partition: `market_partitions.bhavcopy_cm_${year}`, rows: 6 })),
    );
  });

  test('a new partition does not wait for a load of another year that is under way', async () => {
    const client = await store.pool.connect();
    try {
      await client.query('begin');
      await client.query("update market.bhavcopy_cm set revision = revision where trade_date = '2025-09-11'");
      expect(await loadBhav(store, [bhavRow({ symbol: 'A', trade_date: '2001-06-01' })])).toMatchObject({
        inserted: 1,
      });
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  test('of responses to different requests do not wait for each other, those to the same one do', async () => {
    const blank = Object.fromEntries(ratios.fields.map((field) => [field.column, null]));
    const keyColumns = {
      nature_of_report: 'Standalone',
      variant: 'eod',
      as_of_date: '2025-08-29',
      period: '',
    };
    const ask = (symbol: string) =>
      load(store, {
        batches: [{ table: ratios, rows: [{ ...blank, ...keyColumns, exchange: 'BSE', symbol }] }],
        coverage: [
          { day: keyColumns.as_of_date, instrument: symbol, variant: '', state: 'loaded', records: 1 },
        ],
      });
    await Promise.all([ask('A'), ask('B')]);
    const client = await store.pool.connect();
    try {
      await client.query('begin');
      await client.query("select from etl.coverage where instrument = 'A' for update");
      const ended: string[] = [];
      const first = ask('A').then(() => ended.push('first'));
      const waiting = (loads: number) =>
        waitFor(async () => {
          const { rows } = await store.pool.query(
            "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
          );
          return rows.length === loads;
        });
      await waiting(1);
      const second = ask('A').then(() => ended.push('second'));
      await waiting(2);
      expect(await ask('B')).toMatchObject({ unchanged: 1 });
      expect(ended).toEqual([]);
      await client.query('rollback');
      await Promise.all([first, second]);
    } finally {
      client.release(true);
    }
  });
});

describe('the lock of a process', () => {
  test('is taken again when its connection breaks, until it is released', async () => {
    const store = await openStore(undefined, 4);
    const holders = async () => {
      const { rows } = await store.pool.query<{ pid: number }>(
        `select pid from pg_locks where locktype = 'advisory' and granted
            and database = (select oid from pg_database where datname = current_database())`,
      );
      return rows.map(({ pid }) => pid);
    };
    const lock = await keepSessionLock(store, 'a run', async () => undefined);
    const pids = await holders();
    for (let broken = 0; broken < 3; broken += 1) {
      const [pid = 0] = await holders();
      await store.pool.query('select pg_terminate_backend($1)', [pid]);
      const [next = 0] = await waitFor(async () => {
        const others = (await holders()).filter((holder) => holder !== pid);
        return others.length > 0 && others;
      });
      pids.push(next);
    }
    expect(new Set(pids).size).toBe(4);
    await lock.release();
    expect(await holders()).toEqual([]);
  });
});
