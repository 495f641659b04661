import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, describe, expect, test } from 'vitest';
import { columnComment } from '../../../src/declaration/column-comment.ts';
import { migrateDatabase, schemaState } from '../../../src/migrate.ts';
import { tables } from '../../../src/operations/registry.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { emptyDatabase } from '../../support/database.ts';
import { filledDatabase } from '../../support/filled-database.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { openPool } from '../support.ts';

const LOAD_AUDIT = ['first_loaded_at', 'last_changed_at', 'revision', 'run_id', 'load_id'];

interface Column {
  readonly table: string;
  readonly column: string;
  readonly type: string;
  readonly required: boolean;
  readonly comment: string | null;
}

describe('the schema in the database', () => {
  let store: Database;
  beforeAll(async () => {
    store = openPool(await filledDatabase());
  });

  async function columnsOf(schema: string): Promise<Column[]> {
    const result = await store.pool.query<Column>(
      `select c.relname as "table", a.attname as "column", format_type(a.atttypid, a.atttypmod) as type,
         a.attnotnull as required, col_description(c.oid, a.attnum) as comment
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'migrations'
      order by c.relname, a.attnum`,
      [schema],
    );
    return result.rows;
  }

  test('market holds one table per data set, the views of instruments and prices, and nothing else', async () => {
    const result = await store.pool.query<{ name: string; view: boolean; uncommented: number }>(
      `select c.relname as name, c.relkind = 'v' as view, count(*) filter (where col_description(c.oid, a.attnum) is null)::int
           + (obj_description(c.oid, 'pg_class') is null)::int as uncommented
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where relnamespace = 'market'::regnamespace and relkind not in ('i', 'I') group by c.oid order by 1`,
    );
    const namesOf = (view: boolean) => result.rows.filter((row) => row.view === view).map((row) => row.name);
    expect(namesOf(false)).toEqual(tables.map((table) => table.name).sort());
    expect(namesOf(true)).toEqual([
      'band_hits',
      'company_pledge_symbols',
      'computed_band_hits',
      'computed_gainers_losers',
      'computed_trade_totals',
      'financial_ratios_wide',
      'instrument_aliases',
      'instruments',
      'pledge_changes',
      'prices',
      'prices_adjusted',
      'series_aliases',
      'share_events',
    ]);
    expect(result.rows.filter((row) => row.uncommented > 0)).toEqual([]);
  });

  test('market has few functions; those of past states are beside the history', async () => {
    const functions = async (schema: string) =>
      (
        await store.pool.query<{ name: string }>(
          'select distinct proname as name from pg_proc where pronamespace = $1::regnamespace order by 1',
          [schema],
        )
      ).rows.map(({ name }) => name);
    expect(await functions('market')).toEqual(
      'adjusted_prices aliases_of candles classification_on price_factors state universe_on'.split(' '),
    );
    const past = ['at', 'as_of', 'changes'].flatMap((of) => tables.map(({ name }) => `${name}_${of}`));
    expect(await functions('market_history')).toEqual(past.sort());
  });

  test('columns come as keys, values, source audit, load audit; those added by later migrations at the end', async () => {
    const columns = await columnsOf('market');
    for (const table of tables) {
      const columnsOfTable = columns
        .filter((column) => column.table === table.name)
        .map(({ column }) => column);
      const declared = [...table.fields.map((field) => field.column), ...LOAD_AUDIT];
      const first = columnsOfTable.slice(0, columnsOfTable.indexOf('load_id') + 1);
      expect(first).toEqual(declared.filter((column) => first.includes(column)));
      expect([...columnsOfTable].sort()).toEqual([...declared].sort());
      expect(first.slice(0, table.key.length)).toEqual(table.key);
      expect(first.slice(-7)).toEqual(['source_received_at', 'source_saved_at', ...LOAD_AUDIT]);
    }
  });

  test('primary keys are those declared, and no key column takes null', async () => {
    const result = await store.pool.query<{ table: string; columns: string[] }>(
      `select c.relname as "table", array_agg(a.attname::text order by k.position) as columns
         from pg_constraint p join pg_class c on c.oid = p.conrelid
         cross join unnest(p.conkey) with ordinality as k(number, position)
         join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
        where p.contype = 'p' and c.relnamespace = 'market'::regnamespace group by 1`,
    );
    const keys = Object.fromEntries(result.rows.map((row) => [row.table, [...row.columns].sort()]));
    expect(keys).toEqual(Object.fromEntries(tables.map((table) => [table.name, [...table.key].sort()])));
    const columns = await columnsOf('market');
    const nullable = columns.filter(
      (column) =>
        tables.find((table) => table.name === column.table)?.key.includes(column.column) === true &&
        !column.required,
    );
    expect(nullable).toEqual([]);
  });

  test('types are numeric for money, bigint for counts, timestamptz for moments', async () => {
    const types = {
      text: 'text',
      int2: 'smallint',
      int4: 'integer',
      int8: 'bigint',
      numeric: 'numeric',
      boolean: 'boolean',
      date: 'date',
      datetime: 'timestamp with time zone',
    };
    const columns = await columnsOf('market');
    for (const table of tables) {
      const mine = new Map(
        columns.filter((column) => column.table === table.name).map((column) => [column.column, column.type]),
      );
      for (const field of table.fields) {
        expect(mine.get(field.column), `${table.name}.${field.column}`).toBe(types[field.kind]);
      }
      expect(LOAD_AUDIT.map((column) => mine.get(column))).toEqual([
        types.datetime,
        types.datetime,
        types.int4,
        types.int8,
        types.int8,
      ]);
    }
  });

  test('a column that names instruments is a text or a number, in all tables and views of market', async () => {
    const result = await store.pool.query<{ column: string; types: string[] }>(
      `select column_name as "column", array_agg(distinct case data_type when 'text' then 'text' else 'number' end) as types
         from information_schema.columns
        where table_schema in ('market', 'market_history')
          and column_name in ('instrument_id', 'exchange_instrument_id', 'isin', 'symbol', 'scrip_code', 'series')
        group by 1 order by 1`,
    );
    expect(result.rows.filter(({ types }) => types.length > 1)).toEqual([]);
    expect(result.rows.map(({ column }) => column)).toContain('exchange_instrument_id');
  });

  test('every table and column of market and etl has a comment', async () => {
    const columns = [...(await columnsOf('market')), ...(await columnsOf('etl'))];
    expect(columns.filter((column) => (column.comment ?? '').trim() === '')).toEqual([]);
    const bare = await store.pool.query(
      `select c.relname from pg_class c
        where c.relnamespace in ('market'::regnamespace, 'etl'::regnamespace) and c.relkind in ('r', 'p')
          and c.relname <> 'migrations' and obj_description(c.oid, 'pg_class') is null`,
    );
    expect(bare.rows).toEqual([]);
  });

  test('column comments say meaning, unit and source field as declared', async () => {
    const columns = await columnsOf('market');
    for (const table of tables) {
      for (const field of table.fields) {
        const stored = columns.find(
          (column) => column.table === table.name && column.column === field.column,
        );
        expect(stored?.comment).toBe(columnComment(field));
        if (field.from === 'response') expect(stored?.comment).toContain(field.source);
      }
    }
  });
});

describe('migrating', () => {
  test('twice is as good as once', async () => {
    const store = openPool((await emptyDatabase()).url);
    expect(await schemaState(store)).toBe('missing');
    await migrateDatabase(store);
    expect(await schemaState(store)).toBe('current');
    const snapshot = () =>
      store.pool.query(`select oid, xmin, relname from pg_class where relnamespace::regnamespace::text in
        ('market', 'etl', 'market_partitions') order by oid`);
    const before = (await snapshot()).rows;
    await migrateDatabase(store);
    expect((await snapshot()).rows).toEqual(before);
  });

  test('a comment that has changed is brought up to date', async () => {
    const store = openPool((await emptyDatabase()).url);
    await migrateDatabase(store);
    await store.pool.query("comment on column market.bhavcopy_cm.turnover is 'old'");
    await migrateDatabase(store);
    const result = await store.pool.query<{ comment: string }>(
      `select col_description('market.bhavcopy_cm'::regclass, attnum) as comment from pg_attribute
        where attrelid = 'market.bhavcopy_cm'::regclass and attname = 'turnover'`,
    );
    expect(result.rows[0]?.comment).toContain('ttlTrfVal');
  });

  test('applies a file of functions, views or comments again once it has changed', async () => {
    const store = openPool((await emptyDatabase()).url);
    await migrateDatabase(store);
    await store.pool.query('drop function market.state(timestamptz)');
    await migrateDatabase(store);
    const there = async () =>
      (await store.pool.query("select to_regprocedure('market.state(timestamptz)') is not null as there"))
        .rows;
    expect(await there()).toEqual([{ there: false }]);

    await store.pool.query(
      "update etl.repeatable_migrations set hash = 'older' where file = 'functions.sql'",
    );
    expect(await schemaState(store)).toBe('behind');
    await migrateDatabase(store);
    expect(await there()).toEqual([{ there: true }]);
    expect(await schemaState(store)).toBe('current');
  });

  test('calls a database of a newer version current', async () => {
    const store = openPool((await emptyDatabase()).url);
    await migrateDatabase(store);
    await store.pool.query(
      "insert into etl.migrations (hash, created_at) select 'newer', max(created_at) + 1 from etl.migrations",
    );
    await store.pool.query("update etl.repeatable_migrations set hash = 'newer'");
    expect(await schemaState(store)).toBe('current');
  });

  test.runIf(isSlowLayer)('by two processes at once, and once more in this one', async () => {
    const { url } = await emptyDatabase();
    const script = `
      import { openDatabase } from './src/postgres/database.ts';
      import { migrateDatabase } from './src/migrate.ts';
      const database = openDatabase({ url: process.env.DATABASE_URL, connections: 1 });
      await migrateDatabase(database);
      await database.close();`;
    const migrate = async () => {
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
        cwd: new URL('../../..', import.meta.url),
        env: { PATH: process.env.PATH, DATABASE_URL: url },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const [code] = await once(child, 'exit');
      return code;
    };
    const store = openPool(url);
    expect(await Promise.all([migrate(), migrate(), migrateDatabase(store)])).toEqual([0, 0, undefined]);
    expect(await schemaState(store)).toBe('current');
  });
});
