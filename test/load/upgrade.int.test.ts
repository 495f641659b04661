import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { expect, test } from 'vitest';
import { groupBy } from '../../src/core/group-by.ts';
import type { Context } from '../../src/jobs/context.ts';
import type { Database } from '../../src/load/database/database.ts';
import { migrateDatabase, schemaState } from '../../src/load/database/migrate.ts';
import { listDoubtedWindows } from '../../src/load/state/windows/doubted.ts';
import { openStore } from '../jobs/import-support.ts';
import { runCli } from '../support/cli.ts';
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

/** Tables and columns that have other names since; null where what they said is said elsewhere. */
const RENAMED: Readonly<Record<string, string | null>> = {
  'etl.responses': 'etl.answers',
  // A replay folds parts of tables now.
  'etl.windows.response_id': null,
  // Places tell apart what happened within a millisecond.
  'etl.withdrawals.fetched_at': "date_trunc('milliseconds', place)",
  'etl.rejects.last_seen_at': "date_trunc('milliseconds', last_seen_at)",
  // Nobody asked.
  'etl.loads.whole': null,
  // It ordered answers of one millisecond, which their places do now.
  'etl.loads.hash': null,
  // It ordered the lookups of tickers, which are kept with their files now.
  'etl.responses.loaded_at': null,
  'etl.responses.filtered': 'is_filtered',
  'etl.windows.filtered': 'is_filtered',
  'etl.loads.filtered': 'is_filtered',
  'etl.loads.names_changed': 'has_new_names',
  ...renamedIn('top_gainers_losers', { percent_change: 'change_percent', turnover: 'turnover_lakh' }),
  ...renamedIn('total_trade_highlights', {
    shares_volume: 'shares_volume_crore',
    turnover_rs_crore: 'turnover_crore',
  }),
  ...renamedIn('consolidated_pledge', {
    total_promoter_holding_per: 'total_promoter_holding_percent',
    encumbered_last_quarter_pct_of_promoter_shares: 'encumbered_last_quarter_of_promoter_shares_percent',
    encumbered_last_quarter_pct_of_total_shares: 'encumbered_last_quarter_of_total_shares_percent',
    depository_pledged_pct: 'depository_pledged_percent',
  }),
  ...renamedIn('financial_ratios', {
    market_cap: 'market_cap_crore',
    week52_high: 'week52_high_price',
    week52_low: 'week52_low_price',
  }),
};

/** Columns that have another name in a table of `market` and in its history. */
function renamedIn(table: string, columns: Readonly<Record<string, string>>): Record<string, string> {
  const names = ['market', 'market_history'].map((schema) => `${schema}.${table}`);
  return Object.fromEntries(
    names.flatMap((name) => Object.entries(columns).map(([old, now]) => [`${name}.${old}`, now])),
  );
}

/**
 * A filled database as this commit left it: all operations, corrected rows, rejects, withdrawals that were held back,
 * one that was accepted, an imported file, answers loaded late, and a rebuild of the bhav copies that was interrupted.
 * `before_rebuild` has copies of its tables from before. `fill.txt` beside it is the script that made it, and says how.
 */
const FILLED = new URL('../fixtures/upgrade/filled-9512748.sql.gz', import.meta.url);

/** What a rebuild writes anew of rows whose values it restores. */
const LOAD_AUDIT_OF_RUNS = ['first_loaded_at', 'last_changed_at', 'run_id', 'load_id'];

/** A database filled by the commit, not migrated yet. */
async function filledDatabase(): Promise<Context> {
  const { url } = await emptyDatabase();
  const client = openPool(url, 1);
  await client.pool.query(gunzipSync(readFileSync(FILLED)).toString());
  await client.close();
  return openStore(url);
}

/** The rows of every table, of these columns alone, under the names that they have now. */
async function contentsOf(
  store: Database,
  columns: readonly Column[],
  renamed: typeof RENAMED = {},
): Promise<Map<string, unknown[]>> {
  const contents = new Map<string, unknown[]>();
  for (const table of new Set(columns.map((column) => column.table))) {
    const names = columns.flatMap(({ table: of, name }) => {
      const known = `${table}.${name}`;
      if (of !== table || RENAMED[known] === null) return [];
      return [`${renamed[known] ?? name} as ${name}`];
    });
    // Loads whose answers were not kept have rows there since.
    const kept = table === 'etl.responses' ? 'where hash is not null' : '';
    const found = await store.pool.query(
      `select row_to_json(r)::text as row from (select ${names.join(', ')} from ${renamed[table] ?? table} ${kept}) r order by 1`,
    );
    contents.set(
      table,
      found.rows.map(({ row }) => row),
    );
  }
  return contents;
}

/** What each table of `market` shows of every numbered state, in these columns, under the names that they have now. */
async function statesOf(
  { pool }: Database,
  columns: readonly Column[],
  renamed: typeof RENAMED = {},
): Promise<Map<string, string>> {
  const { rows } = await pool.query('select max(state)::int as last from etl.loads');
  const states = new Map<string, string>();
  for (const [table, of] of groupBy(columns, (column) => column.table)) {
    if (!table.startsWith('market.')) continue;
    const found = await pool.query(
      `select s as state, (select md5(string_agg(r::text, '|' order by r::text))
          from (select ${of.map(({ name }) => renamed[`${table}.${name}`] ?? name).join(', ')} from ${table}_at(s)) r) as sum
        from generate_series(0, ${rows[0].last}) s`,
    );
    for (const { state, sum } of found.rows) states.set(`${table} ${state}`, sum);
  }
  return states;
}

test('a filled database of commit 9512748 keeps every row and every past state when it is migrated', async () => {
  const { db: store } = await filledDatabase();
  const columns = await columnsOf(store);
  const before = await contentsOf(store, columns);
  // The rebuild has emptied it and not come to its answers.
  expect([...before.keys()].filter((table) => before.get(table)?.length === 0)).toEqual([
    'market.deliveries',
  ]);
  const states = await statesOf(store, columns);
  expect(await schemaState(store)).toBe('behind');

  await migrateDatabase(store);

  expect(await schemaState(store)).toBe('current');
  const after = await contentsOf(store, columns, RENAMED);
  for (const [table, rows] of before) expect(after.get(table), table).toEqual(rows);
  expect(await statesOf(store, columns, RENAMED)).toEqual(states);
});

test.each([
  [
    'a view of a user over a function whose columns get other names',
    "create materialized view public.weekly as select symbol, close from market.candles('week')",
    'drop materialized view public.weekly',
    /the view weekly uses the function market\.candles.*CHANGELOG\.md/,
  ],
  [
    'a function of a user over such a function',
    "create function public.weeks() returns bigint begin atomic select count(*) from market.candles('week'); end",
    'drop function public.weeks()',
    /your own objects use: function weeks\(\) depends on function market\.candles\(.*CHANGELOG\.md/,
  ],
  [
    'each view of a user over columns that are gone',
    'create view public.one as select fetched_at from etl.withdrawals; create view public.two as select fetched_at from public.one',
    'drop view public.one cascade',
    /: view one depends on column fetched_at of table etl\.withdrawals; view two depends on view one\. Drop/,
  ],
])('%s is named, nothing changes, and without it the migration goes on', async (_, create, drop, message) => {
  const { db } = await filledDatabase();
  const columns = await columnsOf(db);
  await db.pool.query(create);
  await expect(migrateDatabase(db)).rejects.toThrow(message);
  expect(await columnsOf(db)).toEqual(columns);
  await db.pool.query(drop);
  await migrateDatabase(db);
  expect(await schemaState(db)).toBe('current');
});

test.each([
  ['resumed', (id: string) => ['resume', id]],
  ['followed by another one', () => ['replay', 'GetBhavCopyCM', '--rebuild']],
])(
  'a rebuild that was interrupted before the migration and is %s ends in the rows from before it',
  async (_, command) => {
    const { db, config } = await filledDatabase();
    await migrateDatabase(db);
    const read = async (text: string) => (await db.pool.query({ text, rowMode: 'array' })).rows;
    const [[id] = []] = await read(
      "select id::text from etl.runs where kind = 'replay' and state = 'running'",
    );
    const env = { DATABASE_URL: config.DATABASE_URL ?? '' };
    for (const args of [command(id), ['cancel', id]]) {
      const { code } = await runCli(args, { env, cwd: temporaryFolder() });
      // A run that is completed cannot be cancelled.
      expect(code, args.join(' ')).toBe(args[0] === 'cancel' && command(id)[0] === 'resume' ? 2 : 0);
    }

    expect(
      await read(
        "select state from etl.runs where kind = 'replay' and state not in ('completed', 'cancelled')",
      ),
    ).toEqual([]);
    const columns = (await columnsOf(db))
      .filter(({ table, name }) => table === 'market.bhavcopy_cm' && !LOAD_AUDIT_OF_RUNS.includes(name))
      .map(({ name }) => name)
      .join(', ');
    for (const [what, now] of [
      ['market_bhavcopy_cm', 'market.bhavcopy_cm'],
      ['market_history_bhavcopy_cm', 'market_history.bhavcopy_cm'],
    ] as const) {
      const all = (from: string) =>
        read(`select ${columns} from ${from} order by exchange, trade_date, symbol, series, revision`);
      const before = await all(`before_rebuild.${what}`);
      expect(before, what).not.toEqual([]);
      expect(await all(now), what).toEqual(before);
    }
    for (const [table, told] of [
      ['coverage', 'operation, exchange, day, instrument, variant, state, records, diagnostic) from %'],
      ['rejects', 'operation, exchange, fingerprint, record::text) from % where resolved_at is null'],
      [
        'withdrawals',
        "operation, exchange, table_name, day, gone, most, rows_left, state, accepted_by) from % where state in ('refused', 'accepted')",
      ],
    ] as const) {
      const all = (from: string) => read(`select row(${told.replace('%', from)} order by 1`);
      const before = await all(`before_rebuild.etl_${table}`);
      expect(before, table).not.toEqual([]);
      expect(await all(`etl.${table}`), table).toEqual(before);
    }
  },
);

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
    await rows('select scrip_code, scrip_id, symbol, revision from market.consolidated_pledge order by 1'),
  ).toEqual([
    [1, 'NEW', 'NEW', 3],
    [2, '', null, 1],
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

  const listed = await listDoubtedWindows(store.drizzle, { from: '2025-01-01', to: '2025-12-31' }, 10);
  expect(listed.map(({ windowId, reason }) => [windowId, reason])).toEqual([
    [4, 'it states more records than it has'],
    [2, '20 of 40'],
    [1, 'a record is of a day, quarter or exchange that was not asked for'],
  ]);
  const { rows } = await store.pool.query(
    'select window_id::int, is_believed from etl.answers order by window_id',
  );
  expect(rows).toEqual([
    { window_id: 4, is_believed: false },
    { window_id: 5, is_believed: true },
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
