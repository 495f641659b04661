import { and, eq, gt, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { RANGE_REFUSED_LINE } from '../../core/errors.ts';
import { rangeLimits } from './schema/source.ts';
import { windows } from './schema/work.ts';

/**
 * Stores what the answer to a window proves of the longest range that the source allows its operation and the key:
 * at least the length of the window; and no more than the length of the parts where it is the last part of a window
 * that was refused as a whole, and all of them were answered. Where one of them was refused for good, the window went too
 * far back, which says nothing of its length.
 */
export async function learnRangeLimit(
  db: NodePgDatabase,
  { keyHash, windowId }: { readonly keyHash: string; readonly windowId: number },
): Promise<void> {
  await db.execute(sql`
    update ${rangeLimits} l set days = w.to_date - w.from_date + 1, learned_at = clock_timestamp()
      from ${windows} w
     where w.id = ${windowId} and l.key_hash = ${keyHash} and l.operation = w.operation
       and l.days < w.to_date - w.from_date + 1`);
  await db.execute(sql`
    insert into ${rangeLimits} (key_hash, operation, days)
    select ${keyHash}, parent.operation, max(part.to_date - part.from_date + 1)
      from ${windows} w join ${windows} parent on parent.id = w.parent_id join ${windows} part on part.parent_id = parent.id
     where w.id = ${windowId} and parent.diagnostic ~* ${RANGE_REFUSED_LINE}
     group by parent.id, parent.operation having bool_and(part.state in ('loaded', 'empty'))
    on conflict (key_hash, operation) do update set days = excluded.days, learned_at = clock_timestamp()`);
}

/** A limit is believed for so long; then the whole length is tried again, which costs a call where it still holds. */
const BELIEVED = sql`interval '7 days'`;

/** Limits learned for a key, by operation, in days. */
export async function readRangeLimits(
  db: NodePgDatabase,
  keyHash: string,
): Promise<ReadonlyMap<string, number>> {
  const found = await db
    .select()
    .from(rangeLimits)
    .where(
      and(
        eq(rangeLimits.key_hash, keyHash),
        gt(rangeLimits.learned_at, sql`clock_timestamp() - ${BELIEVED}`),
      ),
    );
  return new Map(found.map((row) => [row.operation, row.days]));
}
