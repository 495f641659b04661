import { expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { migrateDatabase, schemaState } from '../../src/load/database/migrate.ts';
import { openStore } from '../jobs/import-support.ts';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { openPool } from './support.ts';

interface Column {
  readonly table: string;
  readonly name: string;
}

/** Columns of all tables as they are. */
async function columnsOf({ pool }: Database): Promise<Column[]> {
  const found = await pool.query<Column>(
    `select format('%I.%I', n.nspname, c.relname) as "table", quote_ident(a.attname) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname in ('etl', 'market', 'market_history') and c.relkind in ('r', 'p')
      and c.relname not in ('migrations', 'repeatable_migrations', 'database_identity', 'alias_progress')
    order by 1, a.attnum`,
  );
  return found.rows;
}

/** The rows of every table, of these columns alone. */
async function contentsOf(store: Database, columns: readonly Column[]): Promise<Map<string, unknown[]>> {
  const contents = new Map<string, unknown[]>();
  for (const table of new Set(columns.map((column) => column.table))) {
    const names = columns.filter((column) => column.table === table).map(({ name }) => name);
    const found = await store.pool.query(
      `select row_to_json(r)::text as row from (select ${names.join(', ')} from ${table}) r order by 1`,
    );
    contents.set(
      table,
      found.rows.map(({ row }) => row),
    );
  }
  return contents;
}

test.each([
  [
    'a view',
    'create materialized view public.before as select close from market.bhavcopy_cm_changes(0, 1)',
    'drop materialized view public.before',
    /your own objects use: materialized view before depends on function market\.bhavcopy_cm_changes\(.*CHANGELOG\.md/,
  ],
  [
    'a function',
    'create function public.before() returns bigint begin atomic select count(*) from market.bhavcopy_cm_changes(0, 1); end',
    'drop function public.before()',
    /your own objects use: function before\(\) depends on function market\.bhavcopy_cm_changes\(.*CHANGELOG\.md/,
  ],
])(
  '%s of a user over a function that gets other columns is named, nothing changes, and without it the migration goes on',
  async (_, create, drop, message) => {
    const { db } = await openStore();
    // As a version before it may have been.
    await db.pool.query(`
    drop function market.bhavcopy_cm_changes;
    create function market.bhavcopy_cm_changes(from_state bigint, to_state bigint) returns table (close numeric) language sql as 'select 1::numeric'`);
    await db.pool.query(create);
    const columns = await columnsOf(db);
    await expect(migrateDatabase(db)).rejects.toThrow(message);
    expect(await columnsOf(db)).toEqual(columns);
    await db.pool.query(drop);
    await migrateDatabase(db);
    expect(await schemaState(db)).toBe('current');
  },
);

test('a database of an unreleased version is refused by every command in one sentence that says what to do, and stays as it is', async () => {
  const { config } = await openStore();
  const old = config.DATABASE_URL ?? '';
  const pool = openPool(old);
  await pool.pool.query("update etl.migrations set hash = 'of another text'");
  const columns = await columnsOf(pool);
  const before = await contentsOf(pool, columns);
  const cwd = temporaryFolder();
  for (const args of [['migrate'], ['status'], ['runs'], ['gaps']]) {
    const { code, stderr } = await runCli(args, { env: { DATABASE_URL: old }, cwd });
    expect([code, stderr.trim().split('\n').length], args.join(' ')).toEqual([2, 1]);
    expect(stderr).toMatch(/was made by an unreleased version.*pg_dump.*eod migrate.*eod replay --source/);
  }
  expect(await contentsOf(pool, columns)).toEqual(before);
});
