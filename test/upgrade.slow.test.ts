import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { groupBy } from '../src/core/iterables.ts';
import type { Context } from '../src/jobs/context.ts';
import { migrateDatabase, schemaState } from '../src/migrate.ts';
import type { Database } from '../src/postgres/database.ts';
import { openPool } from './load/support.ts';
import { runCli } from './support/cli.ts';
import { emptyDatabase } from './support/database.ts';
import { type Column, columnsOf, contentsOf } from './support/database-contents.ts';
import { openStore } from './support/import-support.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

/**
 * A filled database as 0.1.0 leaves it: all operations, corrected rows, rejects, withdrawals that were withheld, one
 * that was accepted, an imported file, responses loaded late, and a replay of the bhav copies that was interrupted.
 * `before_replay` has copies of the tables from before that replay. Until 0.1.0 is released, the file is written anew
 * after each change of the schema: `filled-database.slow.test.ts` does so, and says how.
 */
const FILLED = new URL('./fixtures/upgrade/filled-0.1.0.sql.gz', import.meta.url);

/** What a replay writes anew of rows whose values it restores. */
const LOAD_AUDIT_OF_RUNS = ['first_loaded_at', 'last_changed_at', 'run_id', 'load_id'];

/** A database filled by the last release, not migrated yet. */
async function filledDatabase(): Promise<Context> {
  const { url } = await emptyDatabase();
  const client = openPool(url, 1);
  await client.pool.query(gunzipSync(readFileSync(FILLED)).toString());
  await client.close();
  return openStore(url);
}

/** What each table of `market` shows of every numbered state that it can show, in these columns. */
async function statesOf({ pool }: Database, columns: readonly Column[]): Promise<Map<string, string>> {
  const { rows } = await pool.query('select max(state)::int as last from etl.loads');
  const states = new Map<string, string>();
  for (const [table, of] of groupBy(columns, (column) => column.table)) {
    if (!table.startsWith('market.')) continue;
    const result = await pool.query(
      `select s as state, (select md5(string_agg(r::text, '|' order by r::text))
          from (select ${of.map(({ name }) => name).join(', ')} from ${table.replace('market.', 'market_history.')}_at(s)) r) as sum
        from generate_series(0, ${rows[0].last}) s`,
    );
    for (const { state, sum } of result.rows) states.set(`${table} ${state}`, sum);
  }
  return states;
}

test('a filled database of 0.1.0 keeps every row and every past state when it is migrated', async () => {
  const { db } = await filledDatabase();
  const columns = await columnsOf(db);
  const before = await contentsOf(db, columns);
  const empty = [...before.keys()].filter((table) => before.get(table)?.length === 0);
  expect(empty).toEqual([]);
  const states = await statesOf(db, columns);
  expect(states.size).toBeGreaterThan(1_000);

  await migrateDatabase(db);

  expect(await schemaState(db)).toBe('current');
  const after = await contentsOf(db, columns);
  for (const [table, rows] of before) expect(after.get(table), table).toEqual(rows);
  expect(await statesOf(db, columns)).toEqual(states);
});

test.each([
  ['resumed', (id: string) => ['runs', 'resume', id]],
  ['followed by another one', () => ['replay', 'GetBhavCopyCM']],
])(
  'a replay that was interrupted before the migration and is %s ends in the rows from before it',
  async (_, command) => {
    const { db, config } = await filledDatabase();
    await migrateDatabase(db);
    const read = async (text: string) => (await db.pool.query({ text, rowMode: 'array' })).rows;
    const interrupted = "select id::text from etl.runs where kind = 'replay' and state = 'running'";
    const [[id] = []] = await read(interrupted);
    const env = { DATABASE_URL: config.DATABASE_URL ?? '' };
    for (const args of [command(id), ['runs', 'cancel', id]]) {
      const { code } = await runCli(args, { env, cwd: temporaryFolder() });
      // A run that is completed cannot be cancelled.
      expect(code, args.join(' ')).toBe(args[1] === 'cancel' && command(id)[1] === 'resume' ? 2 : 0);
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
    const statements = {
      'market.bhavcopy_cm': `select ${columns} from %`,
      'market_history.bhavcopy_cm': `select ${columns} from %`,
      'etl.coverage':
        'select operation, exchange, day, instrument, variant, state, records, diagnostic from %',
      'etl.rejects': 'select operation, exchange, fingerprint, record::text from % where resolved_at is null',
      'etl.withdrawals':
        "select operation, exchange, table_name, day, unlisted_rows, max_rows, remaining_rows, state, accepted_by from % where state in ('withheld', 'accepted')",
    };
    for (const [table, select] of Object.entries(statements)) {
      const all = (from: string) =>
        read(`select r::text from (${select.replace('%', from)}) r order by r::text`);
      const before = await all(`before_replay.${table.replace('.', '_')}`);
      expect(before, table).not.toEqual([]);
      expect(await all(table), table).toEqual(before);
    }
  },
);
