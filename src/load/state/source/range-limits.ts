import { and, eq, gt, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { RANGE_REFUSED_LINE } from '../../../core/errors.ts';
import { rangeLimits } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';

/**
 * Stores what a covered window proves about the longest range that the source allows its operation and the key: at
 * least the length of the window. If it is the last piece of a window that was refused, and all pieces were covered,
 * then at most the length of the pieces. If a piece was refused for good, the window went too far back, which says
 * nothing about its length.
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
    select ${keyHash}, parent.operation, max(piece.to_date - piece.from_date + 1)
      from ${windows} w join ${windows} parent on parent.id = w.parent_id join ${windows} piece on piece.parent_id = parent.id
     where w.id = ${windowId} and parent.diagnostic ~* ${RANGE_REFUSED_LINE}
     group by parent.id, parent.operation having bool_and(piece.state in ('loaded', 'empty'))
    on conflict (key_hash, operation) do update set days = excluded.days, learned_at = clock_timestamp()`);
}

/** A limit is used for this long; then the full length is tried again, which costs a call if the limit still holds. */
const LIMIT_USED_FOR = sql`interval '7 days'`;

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
        gt(rangeLimits.learned_at, sql`clock_timestamp() - ${LIMIT_USED_FOR}`),
      ),
    );
  return new Map(found.map((row) => [row.operation, row.days]));
}
