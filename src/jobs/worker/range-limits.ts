import type { ClientBase, Pool } from 'pg';

/** Remembers the longest range the source allows an operation and key. */
export async function learnRangeLimit(
  client: ClientBase,
  keyHash: string,
  operation: string,
  days: number,
): Promise<void> {
  await client.query(
    `insert into etl.range_limits (key_hash, operation, days) values ($1, $2, $3)
     on conflict (key_hash, operation) do update set days = excluded.days, learned_at = clock_timestamp()`,
    [keyHash, operation, days],
  );
}

/** Limits learned for a key, by operation, in days. */
export async function rangeLimits(pool: Pool, keyHash: string): Promise<ReadonlyMap<string, number>> {
  const found = await pool.query<{ operation: string; days: number }>(
    'select operation, days from etl.range_limits where key_hash = $1',
    [keyHash],
  );
  return new Map(found.rows.map((row) => [row.operation, row.days]));
}
