import type { Pool, PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { positionAt } from '../../../src/core/position.ts';
import { applyResponse } from '../../../src/load/merge/merge.ts';
import { mergeSql } from '../../../src/load/merge/merge-sql.ts';
import { observeStatement } from '../../../src/load/observed-aliases/observed-alias-sql.ts';
import { analyzeTables } from '../../../src/load/statistics.ts';
import { deriveButEvents } from '../../support/derive.ts';
import { bhavcopy, bhavRow, loadBhav, openStore } from '../support.ts';

const RECORDS = 2_000;

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Runs a query and gives its plan with what each step did. */
async function planOf(
  db: Pick<PoolClient, 'query'>,
  query: string,
  values: unknown[] = [],
): Promise<PlanNode> {
  const explained = await db.query(`explain (analyze, format json) ${query}`, values);
  return explained.rows[0]['QUERY PLAN'][0].Plan;
}

/** Rows all steps of a plan have looked at together. */
function rowsLookedAt(node: PlanNode): number {
  const each =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
  return (node.Plans ?? []).reduce((sum, step) => sum + rowsLookedAt(step), each * node['Actual Loops']);
}

/** Rows that the steps of a plan have read in vain. */
function rowsRemoved(node: PlanNode): number {
  const steps = node.Plans ?? [];
  return steps.reduce((sum, step) => sum + rowsRemoved(step), node['Rows Removed by Filter'] ?? 0);
}

interface Looked {
  readonly merge: number;
  readonly withdraw: number;
  readonly observe: number;
}

/** Loads what is stored of a day once more, and undoes it; says how many rows that meant looking at. */
async function loadAgain(client: PoolClient, day: string, price: string): Promise<Looked> {
  const { createStage, merge, withdraw } = mergeSql(bhavcopy, [day]);
  const columns = bhavcopy.fields.map((field) => field.column).join(', ');
  await client.query(createStage);
  await client.query('begin');
  await client.query(
    `insert into pg_temp.stage_bhavcopy_cm (_ord, ${columns})
     select row_number() over (), ${columns} from market.bhavcopy_cm where trade_date = $1`,
    [day],
  );
  await client.query('update pg_temp.stage_bhavcopy_cm set close_price = $1', [price]);
  const looked = async (statement: string, values: unknown[]) =>
    rowsLookedAt(await planOf(client, statement, values));
  const rows = {
    merge: await looked(merge.text, [1, 1, new Date().toISOString()]),
    withdraw: await looked(withdraw.text, [1, 'NSE', 0.1, 5, false, [day], [], null, '{}']),
    observe: await looked(observeStatement(bhavcopy), ['NSE', day, day]),
  };
  await client.query('rollback');
  return rows;
}

/**
 * The statistics never know the day that is being loaded. A planner that took it to be empty once
 * compared each of its records with each of its rows: minutes instead of a second.
 */
test('a load looks each stored row up a few times, though the statistics know nothing of its day', async () => {
  const tradingDay = (day: string) =>
    Array.from({ length: RECORDS }, (_, at) => bhavRow({ symbol: `S${at}`, trade_date: day }));
  const store = await openStore();
  for (const day of ['2025-08-27', '2025-08-28']) await loadBhav(store, tradingDay(day));
  // As an analyst might: an index that looks perfect for one empty day.
  await store.pool.query('create index on market.bhavcopy_cm (trade_date)');
  await store.pool.query('analyze market.bhavcopy_cm');
  await loadBhav(store, tradingDay('2025-08-29'));
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

/**
 * Before a trading day is copied, a query decides whether it is new. The planner counts on finding a row of it anywhere:
 * once it read all rows of the year for each trading day, from the first automatic ANALYZE in the middle of a load on.
 */
test('trading days that are copied read no rows of each other, though the table is analyzed meanwhile', async () => {
  const store = await openStore();
  const client = await store.pool.connect();
  try {
    await client.query("select etl.ensure_year_partition('bhavcopy_cm', 2025)");
    await client.query('begin');
    for (let at = 1; at <= 30; at++) {
      const day = `2025-09-${String(at).padStart(2, '0')}`;
      const rows = Array.from({ length: 1_000 }, (_, n) => bhavRow({ symbol: `S${n}`, trade_date: day }));
      const fetchedAt = new Date();
      const ids = { runId: 1, loadId: 1, exchange: 'NSE' };
      const load = { ...ids, fetchedAt, position: positionAt(fetchedAt), maxWithdrawShare: 1 };
      const response = { table: bhavcopy, rows, fullSet: undefined, days: [day] };
      expect(await applyResponse(client, load, response)).toMatchObject({ inserted: 1_000 });
      if (at === 15) await client.query('analyze market.bhavcopy_cm');
    }
    const read = await client.query(
      "select seq_tup_read::int as rows from pg_stat_xact_user_tables where relname = 'bhavcopy_cm_2025'",
    );
    // The table is empty at first, and then as small as what an index would read.
    expect(read.rows[0].rows).toBeLessThan(3_000);
  } finally {
    await client.query('rollback');
    client.release();
  }
});

/** The plan of each statement that a pool of one connection sends from now on, with what each step did. */
async function collectPlans(pool: Pool): Promise<{ readonly query: string; readonly plan: PlanNode }[]> {
  const plans: { query: string; plan: PlanNode }[] = [];
  const client = await pool.connect();
  client.on('notice', ({ message = '' }) => {
    const [, json] = /^duration: [^{]*plan:\s*(\{.*)$/s.exec(message) ?? [];
    if (json === undefined) return;
    const { 'Query Text': query, Plan: plan } = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode };
    plans.push({ query, plan });
  });
  await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on;
    set auto_explain.log_format = json; set auto_explain.log_level = notice`);
  client.release();
  return plans;
}

/**
 * After a replay, autovacuum may find the tables of names empty, just before they are filled. The planner joined them
 * row by row then: 25 million comparisons for 5,000 names, and 16 of the 25 seconds that a replay took.
 */
test('names are read with few looks at rows, though the statistics say that nothing has a name', async () => {
  const store = await openStore(undefined, 1);
  const tradingDay = (trade_date: string, line = 'A') =>
    Array.from({ length: RECORDS }, (_, at) =>
      bhavRow({ symbol: `S${at}`, isin: `INE${at + 100}${line}01010`, trade_date }),
    );
  const plans = await collectPlans(store.pool);
  const observe = async () => {
    await store.pool.query(
      `update pg_class set reltuples = 0, relpages = 1
        where oid in ('etl.observed_aliases'::regclass, 'etl.alias_owners'::regclass)`,
    );
    plans.length = 0;
    await deriveButEvents(store);
    return plans
      .filter(({ plan }) => rowsLookedAt(plan) >= 200 * RECORDS)
      .map(({ query, plan }) => [query, rowsLookedAt(plan)]);
  };
  await loadBhav(store, tradingDay('2025-08-27'));
  expect(await observe()).toEqual([]);
  // Later days, earlier ones, which identify all again, and rows that have another name now: then all names are read again.
  for (const rows of [tradingDay('2025-08-28'), tradingDay('2025-08-20'), tradingDay('2025-08-20', 'B')]) {
    await loadBhav(store, rows);
    expect(await observe()).toEqual([]);
    expect(plans.some(({ query }) => query.includes('insert into etl.observed_aliases'))).toBe(true);
  }
});

/** Tables that a plan reads from their first row to their last. */
function readWhole(node: PlanNode): string[] {
  // A partition made ahead is empty: there is nothing to read.
  const tableRead =
    node['Node Type'] === 'Seq Scan' && rowsLookedAt(node) > 0 ? [node['Relation Name'] ?? ''] : [];
  return [...tableRead, ...(node.Plans ?? []).flatMap(readWhole)];
}

test('all days of one company are found through indexes, in every partition, by ISIN and through renames', async () => {
  const store = await openStore();
  const others = Array.from({ length: 1_500 }, (_, at) => ({
    symbol: `S${at}`,
    isin: `INE${at + 100}A01010`,
    exchange_instrument_id: at + 100,
  }));
  const days = ['2023-08-28', '2024-08-28', '2025-08-28'];
  for (const [at, trade_date] of days.entries()) {
    const company = bhavRow({
      symbol: at === 0 ? 'OLD' : 'NEW',
      isin: 'INE001A01036',
      exchange_instrument_id: at + 1,
      trade_date,
    });
    await loadBhav(store, [company, ...others.map((other) => bhavRow({ ...other, trade_date }))]);
  }
  await deriveButEvents(store);
  await store.pool.query('analyze market.bhavcopy_cm, etl.observed_aliases');
  const plan = (query: string, values: unknown[] = []) => planOf(store.pool, query, values);
  const byIsin = await plan(
    `select trade_date, close_price from market.bhavcopy_cm where isin = 'INE001A01036'`,
  );
  const renamed = await plan(`
    select b.trade_date, b.symbol, b.close_price from market.aliases_of('NSE:INE001A01036') a
      join market.bhavcopy_cm b on b.exchange = a.exchange and b.symbol = a.alias and b.series = a.series
       and b.trade_date >= a.valid_from and b.trade_date < a.valid_to
     where a.kind = 'series'`);
  for (const root of [byIsin, renamed]) expect(root['Actual Rows']).toBe(days.length);
  // What a function does is not in the plan of a query that calls it.
  const body = await store.pool.query<{ body: string }>(
    "select prosrc as body from pg_proc where oid = 'market.aliases_of'::regproc",
  );
  const aliases = await plan(body.rows[0]?.body ?? '', ['NSE:INE001A01036']);
  for (const root of [byIsin, renamed, aliases]) {
    expect(readWhole(root)).toEqual([]);
    expect(rowsLookedAt(root)).toBeLessThan(300);
  }
});

test('all days of a symbol on one exchange are found without the rows of the other', async () => {
  const { pool } = await openStore();
  for (const year of [2024, 2025])
    await pool.query(`select etl.ensure_year_partition('bhavcopy_cm', $1)`, [year]);
  for (const table of ['bhavcopy_cm', 'deliveries']) {
    await pool.query(
      `insert into market.${table} (exchange, symbol, series, trade_date, first_loaded_at, last_changed_at, revision, run_id, load_id)
       select e.exchange, 'S' || n, 'EQ', d.day::date, now(), now(), 1, 1, 1
         from generate_series(timestamp '2024-07-01', '2025-06-30', '2 days') as d(day), unnest(array['BSE', 'NSE']) as e(exchange), generate_series(1, 100) as n`,
    );
    await pool.query(`analyze market.${table}`);
    const statement = `select * from market.${table} where exchange = 'NSE' and symbol = 'S9' order by trade_date`;
    const plan = await planOf(pool, statement);
    expect(plan['Actual Rows']).toBe(183);
    expect(readWhole(plan)).toEqual([]);
    expect(rowsRemoved(plan)).toBe(0);
  }
});

test('the aliases of one instrument are its rows of the view', async () => {
  const store = await openStore();
  await loadBhav(store, [
    bhavRow({ symbol: 'OLD', isin: 'INE001A01036', trade_date: '2025-08-27' }),
    bhavRow({ symbol: 'OTHER', isin: 'INE002A01018', trade_date: '2025-08-27' }),
  ]);
  await loadBhav(store, [
    bhavRow({ symbol: 'NEW', isin: 'INE001A01036', trade_date: '2025-08-28' }),
    bhavRow({ symbol: 'OLD', isin: 'INE002A01018', trade_date: '2025-08-28' }),
  ]);
  await deriveButEvents(store);
  const result = await store.pool.query(
    `select i.instrument_id, (select count(*)::int from market.instrument_aliases a where a.instrument_id = i.instrument_id) as names,
       (select count(*)::int from (select * from market.aliases_of(i.instrument_id) intersect all
          select * from market.instrument_aliases a where a.instrument_id = i.instrument_id) s) as same
       from market.instruments i order by 1`,
  );
  expect(result.rows).toEqual([
    { instrument_id: 'NSE:INE001A01036', names: 5, same: 5 },
    { instrument_id: 'NSE:INE002A01018', names: 5, same: 5 },
  ]);
});

test('views read only the rows of the symbol, the instrument or the day that is queried', async () => {
  const store = await openStore();
  for (const trade_date of ['2023-08-28', '2024-08-28', '2025-08-28']) {
    const tradingDay = Array.from({ length: 1_500 }, (_, at) =>
      bhavRow({ symbol: `S${at}`, isin: `INE${at + 100}A01010`, trade_date }),
    );
    await loadBhav(store, tradingDay);
    const { pool } = store;
    await pool.query(
      `insert into market.deliveries (exchange, symbol, series, trade_date, first_loaded_at, last_changed_at, revision, run_id, load_id)
       select exchange, symbol, series, trade_date, now(), now(), 1, 1, 1 from market.bhavcopy_cm where trade_date = $1`,
      [trade_date],
    );
  }
  // A third of the shares have had a split.
  await store.pool.query(
    `insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, status, first_loaded_at, last_changed_at, revision, run_id, load_id)
     select 'NSE', 'S' || n, '2024-03-01', 'split', '', 'NSE:INE' || n + 100 || 'A01010', 2, 1, 'applied', now(), now(), 1, 1, 1
       from generate_series(0, 1499, 3) n`,
  );
  await deriveButEvents(store);
  await store.pool.query('analyze');
  const look = async (query: string) => {
    const plan = await planOf(store.pool, `select * from ${query}`);
    const whole = readWhole(plan).filter((name) => /^(bhavcopy_cm|deliveries)/.test(name));
    return { rowCount: plan['Actual Rows'], whole };
  };
  const ofOne = { rowCount: 3, whole: [] };
  expect(await look(`market.prices where symbol = 'S9'`)).toEqual(ofOne);
  expect(await look(`market.prices where instrument_id = 'NSE:INE109A01010'`)).toEqual(ofOne);
  expect(await look(`market.candles('year') where symbol = 'S9'`)).toEqual(ofOne);
  expect(await look(`market.candles('year') where instrument_id = 'NSE:INE109A01010'`)).toEqual(ofOne);
  const day = await look(`market.prices where trade_date = '2024-08-28'`);
  expect(day.rowCount).toBe(1_500);
  // Nothing but the partition of its year, which here holds this one day; and deliveries, which are few here.
  expect(day.whole.filter((name) => !name.endsWith('_2024'))).toEqual(['deliveries']);
});

test('tables are analyzed when they are filled first', async () => {
  const store = await openStore();
  await loadBhav(store, [bhavRow({ symbol: 'TCS', trade_date: '2025-09-01' })]);
  await deriveButEvents(store);
  const analyzed = await analyzeTables(store);
  expect(analyzed).toEqual(
    expect.arrayContaining(['etl.alias_owners', 'market.bhavcopy_cm', 'market_partitions.bhavcopy_cm_2025']),
  );
  const { rows } = await store.pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, relname) as name from pg_stat_user_tables
      where schemaname in ('etl', 'market', 'market_history', 'market_partitions') and pg_relation_size(relid) > 0`,
  );
  expect(analyzed).toEqual(expect.arrayContaining(rows.map(({ name }) => name)));
  expect(await analyzeTables(store)).toEqual([]);
});

test('tables with partitions are analyzed when they are filled first, and when a tenth of their rows has changed', async () => {
  const store = await openStore();
  // Others, and partitions, are analyzed by their own changes.
  const analyzed = async () => (await analyzeTables(store)).filter((name) => name.startsWith('market.'));
  const days = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => `2025-09-${String(from + at).padStart(2, '0')}`);
  const load = async (days: readonly string[]) => {
    for (const trade_date of days) {
      await loadBhav(
        store,
        Array.from({ length: 100 }, (_, at) => bhavRow({ symbol: `S${at}`, trade_date })),
      );
    }
    // So that the counts are those of this moment.
    await store.pool.query('vacuum market_partitions.bhavcopy_cm_2025');
  };
  const known = async () =>
    (
      await store.pool.query<{ rows: number }>(
        "select reltuples::int as rows from pg_class where oid = 'market.bhavcopy_cm'::regclass",
      )
    ).rows[0]?.rows;
  expect(await analyzed()).toEqual([]);
  await load(days(1, 11));
  expect(await known()).toBe(-1);
  expect(await analyzed()).toEqual(['market.bhavcopy_cm']);
  expect(await known()).toBe(1_000);
  await load(days(11, 12));
  expect(await analyzed()).toEqual([]);
  await load(days(12, 14));
  // Who adds a partition, for instance, has it locked.
  const other = await store.pool.connect();
  try {
    await other.query('begin; lock table only market.bhavcopy_cm in share update exclusive mode');
    expect(await analyzed()).toEqual(['market.bhavcopy_cm']);
    expect(await known()).toBe(1_000);
    await other.query("select pg_advisory_xact_lock(hashtextextended('eod:analyze', 0))");
    expect(await analyzed()).toEqual([]);
  } finally {
    await other.query('rollback');
    other.release();
  }
  expect(await analyzed()).toEqual(['market.bhavcopy_cm']);
  expect(await known()).toBe(1_300);
});

/** The tables that a plan reads, with the years of partitions left out. */
function relations(node: PlanNode): string[] {
  const relation = node['Relation Name']?.replace(/_\d{4}$/, '');
  return [...(relation === undefined ? [] : [relation]), ...(node.Plans ?? []).flatMap(relations)];
}

test('market.prices of all days looks trading days up for the rows of events alone', async () => {
  const store = await openStore();
  const SYMBOLS = 20;
  for (let day = 1; day <= 28; day++) {
    await loadBhav(
      store,
      Array.from({ length: SYMBOLS }, (_, at) =>
        bhavRow({ symbol: `S${at}`, trade_date: `2025-09-${String(day).padStart(2, '0')}` }),
      ),
    );
  }
  await deriveButEvents(store);
  await store.pool.query(
    `insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, status,
                                          first_loaded_at, last_changed_at, revision, run_id, load_id)
     select exchange, symbol, '2025-09-03', 'split', '', instrument_id, 2, 1, 'applied', now(), now(), 1, 1, 1 from market.series_aliases`,
  );
  await deriveButEvents(store);
  await store.pool.query('analyze market.corporate_events');
  const sorted = 'select * from market.prices order by return_percent desc nulls last limit 5';
  const client = await store.pool.connect();
  try {
    await client.query("begin; set local track_functions to 'all'");
    await client.query(sorted);
    const { rows } = await client.query(
      "select calls::int from pg_stat_xact_user_functions where funcname = 'previous_close_factor'",
    );
    // Once for each event to sort by it, and once more for other columns of the five rows that the limit leaves.
    expect(rows).toHaveLength(1);
    expect(rows[0].calls).toBeGreaterThanOrEqual(SYMBOLS);
    expect(rows[0].calls).toBeLessThanOrEqual(SYMBOLS + 5);
    await client.query('rollback');
  } finally {
    client.release();
  }
  // Columns that nobody selects cost nothing.
  const readBy = async (query: string) => [...new Set(relations(await planOf(store.pool, query)))].sort();
  const months = "select date_trunc('month', trade_date), sum(turnover) from market.prices group by 1";
  expect(await readBy(months)).toEqual(['bhavcopy_cm']);
  // Also with conditions, which the planner puts in place of the columns that tables are joined by.
  const condition = "exchange = 'NSE' and symbol = 'S1' and series = 'EQ'";
  expect(await readBy(`select sum(turnover) from market.prices where ${condition}`)).toEqual(['bhavcopy_cm']);
  const returns = `select symbol, return_percent from market.prices where series = 'EQ' order by 2 desc nulls last limit 5`;
  expect(await readBy(returns)).toEqual(['bhavcopy_cm', 'event_sessions']);
  expect(await readBy(`select * from market.prices where ${condition}`)).toContain('deliveries');
});
