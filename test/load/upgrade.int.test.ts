import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { migrateDatabase, schemaState } from '../../src/load/database/migrate.ts';
import { listSuspiciousWindows } from '../../src/load/state/run-facts.ts';
import { emptyDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { openPool } from './support.ts';

/** The newest migration of the last release. Moves on with every release; a migration once released never changes. */
const LAST_RELEASED = '0000_initial';

/** The migrations of the last release. */
function releasedMigrations(): string {
  const folder = join(temporaryFolder(), 'migrations');
  cpSync(fileURLToPath(new URL('../../migrations/', import.meta.url)), folder, { recursive: true });
  const file = join(folder, 'meta/_journal.json');
  const journal: { entries: { tag: string }[] } = JSON.parse(readFileSync(file, 'utf8'));
  const last = journal.entries.findIndex(({ tag }) => tag === LAST_RELEASED);
  expect(last, `${LAST_RELEASED} is one of the migrations`).toBeGreaterThanOrEqual(0);
  writeFileSync(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, last + 1) }));
  return folder;
}

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  /** Filled by Postgres or left null where nothing is said. */
  readonly optional: boolean;
}

/** Columns of all tables as they are, tables that others refer to first. */
async function columnsOf({ pool }: Database): Promise<Column[]> {
  const found = await pool.query<Column>(
    `select format('%I.%I', n.nspname, c.relname) as "table", quote_ident(a.attname) as name,
       format_type(a.atttypid, a.atttypmod) as type, a.atthasdef or not a.attnotnull as optional
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname in ('etl', 'market', 'market_history') and c.relkind in ('r', 'p')
      and c.relname not in ('migrations', 'repeatable_migrations', 'database_identity', 'alias_progress')
    order by exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'f'), 1, a.attnum`,
  );
  return found.rows;
}

/** Tables and columns that have other names since; null where what they said is said elsewhere. */
const RENAMED: Readonly<Record<string, string | null>> = {
  'etl.responses': 'etl.answers',
  'etl.windows.response_id': 'answer_id',
  'etl.withdrawals.fetched_at': 'place',
  // It ordered answers of one millisecond, which their places do now.
  'etl.loads.hash': null,
};

/** Words where a check constraint allows only some. */
const WORDS: Readonly<Record<string, string>> = {
  'etl.runs.kind': 'backfill',
  'etl.access_keys.state': 'good',
  'etl.coverage.state': 'loaded',
  'etl.findings.severity': 'info',
  'etl.withdrawals.state': 'refused',
};

/** A value for the row of this number. */
function madeUpValue({ table, name, type }: Column, row: number): unknown {
  switch (type) {
    case 'text':
      return WORDS[`${table}.${name}`] ?? `text ${row}`;
    case 'text[]':
      return [`text ${row}`];
    case 'boolean':
      return row === 1;
    case 'date':
      return `2025-01-0${row}`;
    case 'timestamp with time zone':
      return `2025-01-0${row}T12:00:00+05:30`;
    case 'jsonb':
      return JSON.stringify({ row });
    case 'bytea':
      return Buffer.from(`bytes ${row}`);
    case 'numeric':
      return `${row}.50`;
    default:
      return row;
  }
}

/** Writes two rows into every table: every column of the data tables, of the others those that must be told. */
async function fill(store: Database, columns: readonly Column[]): Promise<void> {
  for (const table of new Set(columns.map((column) => column.table))) {
    const told = columns.filter(
      (column) => column.table === table && (!column.optional || !table.startsWith('etl.')),
    );
    const names = told.map(({ name }) => name).join(', ');
    const places = told.map((_, at) => `$${at + 1}`).join(', ');
    for (const row of [1, 2]) {
      const values = told.map((column) => madeUpValue(column, row));
      await store.pool.query(`insert into ${table} (${names}) values (${places})`, values);
    }
  }
}

/** The rows of every table, of these columns alone, under the names that they have now. */
async function contentsOf(
  store: Database,
  columns: readonly Column[],
  renamed = RENAMED,
): Promise<Map<string, unknown[]>> {
  const contents = new Map<string, unknown[]>();
  for (const table of new Set(columns.map((column) => column.table))) {
    const names = columns.flatMap(({ table: of, name }) => {
      const known = `${table}.${name}`;
      if (of !== table || RENAMED[known] === null) return [];
      return [`${known in renamed ? renamed[known] : name} as ${name}`];
    });
    // Loads whose answers were not kept have rows there since.
    const kept = table === 'etl.responses' ? 'where hash is not null' : '';
    const found = await store.pool.query(
      `select ${names.join(', ')} from ${renamed[table] ?? table} ${kept} order by 1, 2`,
    );
    contents.set(table, found.rows);
  }
  return contents;
}

test('a filled database of the last release keeps every row when it is migrated', async () => {
  const store = openPool((await emptyDatabase()).url);
  await migrate(drizzle(store.pool), {
    migrationsFolder: releasedMigrations(),
    migrationsSchema: 'etl',
    migrationsTable: 'migrations',
  });
  const columns = await columnsOf(store);
  await store.pool.query(`create table market_partitions.bhavcopy_cm_2025 partition of market.bhavcopy_cm
    for values from ('2025-01-01') to ('2026-01-01')`);
  await fill(store, columns);
  const before = await contentsOf(store, columns, {});
  expect([...before.values()].map((rows) => rows.length)).toEqual([...before].map(() => 2));
  expect(await schemaState(store)).toBe('behind');

  await migrateDatabase(store);

  expect(await schemaState(store)).toBe('current');
  expect(await contentsOf(store, columns)).toEqual(before);
  for (const table of [...before.keys()].filter((name) => name.startsWith('market.'))) {
    const { rows } = await store.pool.query(`select count(*)::int as rows from ${table}_as_of(now())`);
    expect(rows, table).toEqual([{ rows: 2 }]);
  }
});

test('where a key has grown, rows and their history are found under the new one', async () => {
  const store = openPool((await emptyDatabase()).url);
  await migrate(drizzle(store.pool), {
    migrationsFolder: releasedMigrations(),
    migrationsSchema: 'etl',
    migrationsTable: 'migrations',
  });
  const audit = 'now(), now(), revision, 1, 1 from (values (1), (2)) as r (revision)';
  await store.pool.query(`
    insert into market.consolidated_pledge (exchange, scrip_code, trade_date, scrip_id, first_loaded_at, last_changed_at, revision, run_id, load_id)
      select 'BSE', code, '2025-02-27', id, now(), now(), revision, 1, 1
        from (values (1, 'NEW', 3), (2, null, 1)) as r (code, id, revision);
    insert into market_history.consolidated_pledge (exchange, scrip_code, trade_date, scrip_id, first_loaded_at, last_changed_at, revision, run_id, load_id, valid_from, valid_to, withdrawn, replaced_by_load_id)
      select 'BSE', 1, '2025-02-27', id, now(), now(), revision, 1, 1, now() - interval '1 hour', now(), false, 1
        from (values ('OLD', 1), ('NEW', 2)) as r (id, revision);
    insert into market.corporate_action_categories (exchange, purpose_code, first_loaded_at, last_changed_at, revision, run_id, load_id)
      select 'BSE', 'DP' || revision, ${audit};
    insert into market.series_changes (exchange, change_date, scrip_id, prev_series, to_series, first_loaded_at, last_changed_at, revision, run_id, load_id)
      select 'NSE', '2025-02-27', id, prev, 'X', now(), now(), 1, 1, 1
        from (values ('PRECISION.SM', 'SM'), ('VAKRANGEE', 'EQ'), ('A.B.LTD', 'EQ'), ('A.B.ABC', 'ABC'), ('.SM', 'SM')) as r (id, prev)`);

  await migrateDatabase(store);

  const rows = async (query: string) => (await store.pool.query({ text: query, rowMode: 'array' })).rows;
  expect(
    await rows('select scrip_code, scrip_id, revision from market.consolidated_pledge order by 1'),
  ).toEqual([
    [1, 'NEW', 3],
    [2, '', 1],
  ]);
  expect(
    await rows('select scrip_id, revision, withdrawn from market_history.consolidated_pledge order by 2'),
  ).toEqual([
    ['OLD', 1, true],
    ['NEW', 2, false],
  ]);
  expect(await rows('select corporate_action_type from market.corporate_action_categories')).toEqual([
    [''],
    [''],
  ]);
  expect(
    await rows('select scrip_id, symbol from market.series_changes order by scrip_id collate "C"'),
  ).toEqual([
    ['.SM', '.SM'],
    ['A.B.ABC', 'A.B'],
    ['A.B.LTD', 'A.B.LTD'],
    ['PRECISION.SM', 'PRECISION'],
    ['VAKRANGEE', 'VAKRANGEE'],
  ]);
});

test('what was doubted and nobody has decided still is, and answers that were loaded are believed', async () => {
  const store = openPool((await emptyDatabase()).url);
  await migrate(drizzle(store.pool), {
    migrationsFolder: releasedMigrations(),
    migrationsSchema: 'etl',
    migrationsTable: 'migrations',
  });
  await store.pool.query(`
    insert into etl.runs (kind, state, requested_by, request, from_date, to_date)
      values ('backfill', 'completed', 'me', '{}', '2025-02-03', '2025-02-10');
    insert into etl.windows (run_id, operation, exchange, from_date, to_date, state, suspicious)
      select 1, 'GetBhavCopyCM', 'NSE', date '2025-02-03' + n, date '2025-02-03' + n, 'loaded', reason from (values
        (0, '2 records are of a day, quarter or exchange that was not asked for'), (1, '20 of 40 rows were not listed any more'),
        (2, '20 of 40 rows were not listed any more'), (3, 'it states more records than it has'), (4, null)) as w (n, reason);
    insert into etl.rejects (run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, problems, first_seen_at, last_seen_at, resolved_at)
      select 1, w, 'GetBhavCopyCM', 'NSE', w, '2025-02-03', '2025-02-03', w || resolved::text, '[]', now(), now(), case when resolved then now() end
        from (values (1, false), (1, true), (5, false)) as r (w, resolved);
    insert into etl.withdrawals (load_id, run_id, window_id, operation, exchange, table_name, day, state, reason, gone, most, rows_left, fetched_at, rows)
      select 1, 1, w, 'GetBhavCopyCM', 'NSE', 'bhavcopy_cm', date '2025-02-02' + w, state, '20 of 40', 20, 40, 20, now(), '[]'
        from (values (2, 'refused'), (3, 'outdated')) as d (w, state);
    insert into etl.loads (run_id, window_id, operation, exchange, from_date, to_date, instruments, variant, filtered, fetched_at, committed_at, state, fetched, inserted)
      select 1, w, 'GetBhavCopyCM', 'NSE', date '2025-02-02' + w, date '2025-02-02' + w, '{}', '', false, now() + interval '1 hour' * w, now(), w, records, records
        from (values (4, 0), (5, 1)) as l (w, records)`);

  await migrateDatabase(store);

  const listed = await listSuspiciousWindows(store.drizzle, { from: '2025-01-01', to: '2025-12-31' }, 10);
  expect(listed.map(({ windowId, reason }) => [windowId, reason])).toEqual([
    [4, 'it states more records than it has'],
    [2, '20 of 40'],
    [1, 'a record is of a day, quarter or exchange that was not asked for'],
  ]);
  const { rows } = await store.pool.query(
    'select window_id::int, believed from etl.answers order by window_id',
  );
  expect(rows).toEqual([
    { window_id: 4, believed: false },
    { window_id: 5, believed: true },
  ]);
});

test('a migration that was changed after it was applied is refused, and changes nothing', async () => {
  const store = openPool((await emptyDatabase()).url);
  await migrateDatabase(store);
  await store.pool.query("update etl.migrations set hash = 'of another text'");
  expect(await schemaState(store)).toBe('behind');
  await expect(migrateDatabase(store)).rejects.toThrow(
    /migrated by a version between two releases, and one of its migrations has changed since/,
  );
});
