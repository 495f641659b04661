import { eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { rangeLimits } from './schema/source.ts';

/** Remembers the longest range in days that the source allows an operation and key. */
export async function learnRangeLimit(
  db: NodePgDatabase,
  limit: { readonly keyHash: string; readonly operation: string; readonly days: number },
): Promise<void> {
  const { keyHash, operation, days } = limit;
  await db
    .insert(rangeLimits)
    .values({ key_hash: keyHash, operation, days })
    .onConflictDoUpdate({
      target: [rangeLimits.key_hash, rangeLimits.operation],
      set: { days, learned_at: sql`clock_timestamp()` },
    });
}

/** Limits learned for a key, by operation, in days. */
export async function readRangeLimits(
  db: NodePgDatabase,
  keyHash: string,
): Promise<ReadonlyMap<string, number>> {
  const found = await db.select().from(rangeLimits).where(eq(rangeLimits.key_hash, keyHash));
  return new Map(found.map((row) => [row.operation, row.days]));
}
