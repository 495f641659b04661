import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Backend } from './pipeline.ts';
import { withClient } from './query.ts';
import { redisUrl } from './redis.ts';

/** A part of the queue: about `share` of its keys in Redis, or of the rows of its tables in Postgres. */
export interface LostPart {
  readonly share: number;
  /** Which part. */
  readonly salt: number;
}

/** Makes the queue forget a part of itself, as a Redis that evicts keys does. @returns how much is gone. */
export async function losePart(
  backend: Backend,
  prefix: string,
  databaseUrl: string,
  { share, salt }: LostPart,
): Promise<number> {
  if (backend === 'redis') {
    const redis = new Redis(redisUrl());
    const keys = await redis.keys(`${prefix}:*`);
    const lost = keys.filter((key) => {
      const hash = createHash('sha256')
        .update(`${salt} ${key.slice(prefix.length)}`)
        .digest();
      return hash.readUInt32BE() / 2 ** 32 < share;
    });
    const gone = lost.length === 0 ? 0 : await redis.del(...lost);
    redis.disconnect();
    return gone;
  }
  return withClient(databaseUrl, async (client) => {
    const tables = await client.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relkind = 'r' and c.relname <> 'migration' order by 1`,
      [`${prefix}_queue`],
    );
    let gone = 0;
    for (const { name } of tables.rows) {
      const deleted = await client.query(
        `delete from ${name} t where abs(hashtext($1 || t::text)::bigint) < $2::float8 * 2147483648`,
        [`${salt} `, share],
      );
      gone += deleted.rowCount ?? 0;
    }
    return gone;
  });
}
