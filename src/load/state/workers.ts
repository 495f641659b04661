import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from './schema/columns.ts';
import { workers } from './schema/work.ts';

/** Records that a worker is alive; deletes those that have not been for a week. */
export async function markWorkerSeen(db: NodePgDatabase, worker: string): Promise<void> {
  await db
    .insert(workers)
    .values({ worker })
    .onConflictDoUpdate({ target: workers.worker, set: { seen_at: sql`clock_timestamp()` } });
  await db.delete(workers).where(sql`${workers.seen_at} < clock_timestamp() - interval '7 days'`);
}

/** How many workers have been seen within the last minute, and when any was seen last. */
export async function readWorkers(db: NodePgDatabase) {
  const [found] = await db
    .select({
      seen: sql`count(*) filter (where ${workers.seen_at} > clock_timestamp() - interval '1 minute')`.mapWith(
        Number,
      ),
      lastSeenAt: sql<string | null>`${isoText(sql`max(${workers.seen_at})`)}`,
    })
    .from(workers);
  return found ?? { seen: 0, lastSeenAt: null };
}
