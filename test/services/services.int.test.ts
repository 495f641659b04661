import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { hasSystemPostgres15, startSystemPostgres15 } from '../support/postgres-15.ts';
import { freePrefix, redisUrl } from '../support/redis.ts';

async function ask(url: string, query: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(query)).rows;
  } finally {
    await client.end();
  }
}

describe('the servers the other tests run on', () => {
  test('every test database is migrated and its own', async () => {
    const [one, other] = await Promise.all([testDatabase(), testDatabase()]);
    expect(one.url).not.toBe(other.url);
    await ask(one.url, 'create table public.mine ()');
    const tables =
      "select table_schema, table_name from information_schema.tables where table_schema <> 'pg_catalog'";
    const names = async (url: string) => JSON.stringify(await ask(url, tables));
    expect(await names(one.url)).toContain('"mine"');
    expect(await names(other.url)).not.toContain('"mine"');
    expect(await names(other.url)).toContain('"bhavcopy_cm"');
    await one.drop();
    await expect(ask(one.url, 'select 1')).rejects.toThrow('does not exist');
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

  test('Postgres 15 takes the same migrations', async () => {
    if (!hasSystemPostgres15) {
      console.log('this machine has no Postgres 15 (apt-get install postgresql-15): not tried on it');
      return;
    }
    const server = await startSystemPostgres15();
    try {
      const database = await testDatabase(server.url);
      const [row] = await ask(
        database.url,
        "select current_setting('server_version_num')::int / 10000 as version",
      );
      expect(row).toEqual({ version: 15 });
      await database.drop();
    } finally {
      await server.stop();
    }
  });
});
