import { expect, test } from 'vitest';
import { migrateDatabase, schemaState } from '../src/migrate.ts';
import { openPool } from './load/support.ts';
import { runCli } from './support/cli.ts';
import { columnsOf, contentsOf } from './support/database-contents.ts';
import { openStore } from './support/import-support.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

test.each([
  [
    'a view',
    'create materialized view public.before as select close from market_history.bhavcopy_cm_changes(0, 1)',
    'drop materialized view public.before',
    /your own objects use: materialized view before depends on function market_history\.bhavcopy_cm_changes\(.*docs\/tables\.md/,
  ],
  [
    'a function',
    'create function public.before() returns bigint begin atomic select count(*) from market_history.bhavcopy_cm_changes(0, 1); end',
    'drop function public.before()',
    /your own objects use: function before\(\) depends on function market_history\.bhavcopy_cm_changes\(.*docs\/tables\.md/,
  ],
])(
  '%s of a user that needs a function whose columns change is named, and nothing changes; once it is dropped, the migration goes on',
  async (_, create, drop, message) => {
    const { db } = await openStore();
    // As an earlier version of the function may have been.
    await db.pool.query(`
    drop function market_history.bhavcopy_cm_changes;
    create function market_history.bhavcopy_cm_changes(from_state bigint, to_state bigint) returns table (close numeric) language sql as 'select 1::numeric'`);
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
    expect(stderr).toMatch(
      /was made by an unreleased version.*pg_dump.*eod migrate.*small backup.*eod replay/,
    );
  }
  expect(await contentsOf(pool, columns)).toEqual(before);
});
