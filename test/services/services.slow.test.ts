import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { schemaState } from '../../src/migrate.ts';
import { acceptFindings } from '../../src/state/findings.ts';
import { acceptRejects } from '../../src/state/rejects.ts';
import { bhavRow, loadBhav, openPool } from '../load/support.ts';
import { closeAfterFile } from '../support/closing.ts';
import { SMALL_BACKUP } from '../support/copy-responses.ts';
import { testDatabase } from '../support/database.ts';
import { BSE_UDIFF, importInto, NSE_UDIFF, newFile, openStore } from '../support/import-support.ts';
import { hasSystemPostgres15, POSTGRES_15, startSystemPostgres15 } from '../support/postgres-15.ts';
import { query } from '../support/query.ts';
import { freePrefix, redisUrl } from '../support/redis.ts';
import { replay, rowsOf } from '../support/replay-support.ts';
import { execute, withDatabase } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const run = (program: string, ...args: string[]) =>
  execFileSync(join(POSTGRES_15, program), args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });

/** What docs/operations.md says of backups, with a row of market that has an earlier revision. */
async function checkDumps(adminUrl: string, url: string): Promise<void> {
  const database = openPool(url);
  for (const close_price of ['10.5', '11'])
    await loadBhav(database, [bhavRow({ symbol: 'TCS', close_price })]);
  await database.close();
  const dump = join(temporaryFolder(), 'eod.dump');
  run('pg_dump', '--format=custom', `--file=${dump}`, url);
  await execute(adminUrl, 'create database restored');
  const whole = withDatabase(adminUrl, 'restored');
  run('pg_restore', '--exit-on-error', `--dbname=${whole}`, dump);
  const rows = 'select symbol, close_price::text, revision from';
  for (const table of ['market.bhavcopy_cm', 'market_history.bhavcopy_cm']) {
    expect(await query(whole, `${rows} ${table}`)).toEqual(await query(url, `${rows} ${table}`));
  }
  const after = openPool(whole);
  expect(await schemaState(after)).toBe('current');
  // The sequences go on where they were: the next load gets the next number.
  await loadBhav(after, [bhavRow({ symbol: 'TCS', close_price: '12' })]);
  await after.close();
  expect(await query(whole, `${rows} market.bhavcopy_cm`)).toEqual([
    { symbol: 'TCS', close_price: '12', revision: 3 },
  ]);
}

/** What docs/operations.md says of the small backup. */
async function checkSmallBackup(adminUrl: string): Promise<void> {
  const source = await openStore((await testDatabase(adminUrl)).url);
  await importInto(source, [BSE_UDIFF]);
  // One record cannot be read, and one finding is open; a person accepts both.
  const lines = readFileSync(NSE_UDIFF, 'utf8').trim().split(/\r?\n/);
  const spoiled = lines.map((line, at) => (at === 1 ? line.replace(/2025-08-29/g, 'no day') : line));
  await importInto(source, [newFile(basename(NSE_UDIFF), spoiled)]);
  await query(
    source.config.DATABASE_URL ?? '',
    `insert into etl.findings ("check", severity, operation, exchange, date, expected, found)
       values ('row_count', 'warning', 'GetBhavCopyCM', 'NSE', '2025-08-29', '100', '99')`,
  );
  const { drizzle } = source.db;
  expect(await acceptRejects(drizzle, {}, 'me@here')).toBe(1);
  expect(await acceptFindings(drizzle, {}, 'me@here')).toBe(1);
  const fresh = await openStore((await testDatabase(adminUrl)).url);
  const dump = join(temporaryFolder(), 'responses.dump');
  const [from = '', to = ''] = [source.config.DATABASE_URL, fresh.config.DATABASE_URL];
  run('pg_dump', '--format=custom', '--data-only', `--file=${dump}`, `--table=${SMALL_BACKUP.tables}`, from);
  run('pg_restore', '--exit-on-error', `--dbname=${to}`, dump);
  const commands = SMALL_BACKUP.statements.map((statement) => `--command=${statement}`);
  expect(commands).toHaveLength(7);
  run('psql', '--single-transaction', '--set=ON_ERROR_STOP=1', ...commands, to);
  expect(await replay(fresh, {})).toMatchObject({ state: 'completed', inserted: 199 });
  expect(await rowsOf(fresh, 'market')).toEqual(await rowsOf(source, 'market'));
  const accepted = `select fingerprint, accepted_by, accepted_at, resolved_at from etl.rejects
    union all select "check", accepted_by, accepted_at, resolved_at from etl.findings where found = '99' order by 1`;
  expect(await query(to, accepted)).toEqual(await query(from, accepted));
  expect(await query(to, accepted)).toHaveLength(2);
  // The next response has a number of its own.
  expect(await importInto(fresh, [NSE_UDIFF], { force: true })).toMatchObject({ unchanged: 99 });
}

describe('the servers the other tests run on', () => {
  test('every test gets a database of its own, which is migrated', async () => {
    const [first, second] = await Promise.all([testDatabase(), testDatabase()]);
    expect(first.url).not.toBe(second.url);
    await query(first.url, 'create table public.mine ()');
    const tables =
      "select table_schema, table_name from information_schema.tables where table_schema <> 'pg_catalog'";
    const names = async (url: string) => JSON.stringify(await query(url, tables));
    expect(await names(first.url)).toContain('"mine"');
    expect(await names(second.url)).not.toContain('"mine"');
    expect(await names(second.url)).toContain('"bhavcopy_cm"');
    await first.drop();
    await expect(query(first.url, 'select 1')).rejects.toThrow('does not exist');
  });

  test('Redis evicts nothing and keeps nothing on disk', async () => {
    const redis = new Redis(redisUrl(), { keyPrefix: freePrefix() });
    try {
      await redis.set('a', '1');
      expect(await redis.get('a')).toBe('1');
      expect(await redis.config('GET', 'maxmemory-policy')).toContain('noeviction');
      expect(await redis.config('GET', 'save')).toEqual(['save', '']);
    } finally {
      redis.disconnect();
    }
  });

  test('Postgres 15 takes the same migrations, and a dump of it can be restored, a small one too', async () => {
    if (!hasSystemPostgres15) {
      console.log('this machine has no Postgres 15 (apt-get install postgresql-15): not tried on it');
      return;
    }
    const server = await startSystemPostgres15();
    closeAfterFile(() => server.stop());
    const database = await testDatabase(server.url);
    const [row] = await query(
      database.url,
      "select current_setting('server_version_num')::int / 10000 as version",
    );
    expect(row).toEqual({ version: 15 });
    await checkDumps(server.url, database.url);
    await checkSmallBackup(server.url);
  });
});
