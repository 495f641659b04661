import { hostname } from 'node:os';
import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from './schema/columns.ts';
import { workers } from './schema/work.ts';

/** The name of the worker in this process. */
export function workerName(): string {
  return `${hostname()} ${process.pid}`;
}

/** Records that a worker is alive; deletes those that have not been for a week. */
export async function markWorkerSeen(db: NodePgDatabase, worker: string): Promise<void> {
  await db
    .insert(workers)
    .values({ worker })
    .onConflictDoUpdate({ target: workers.worker, set: { seen_at: sql`clock_timestamp()` } });
  await db.delete(workers).where(sql`${workers.seen_at} < clock_timestamp() - interval '7 days'`);
}

/** Records why a worker cannot store the responses it has; null: it can. */
export async function noteStorageProblem(
  db: NodePgDatabase,
  worker: string,
  problem: string | null,
): Promise<void> {
  const since = sql`case when ${problem}::text is not null then coalesce(${workers.cannot_store_since}, clock_timestamp()) end`;
  await db
    .insert(workers)
    .values({
      worker,
      cannot_store: problem,
      cannot_store_since: problem === null ? null : sql`clock_timestamp()`,
    })
    .onConflictDoUpdate({
      target: workers.worker,
      set: { seen_at: sql`clock_timestamp()`, cannot_store: problem, cannot_store_since: since },
    });
}

/** The workers that were seen within the last minute. */
export interface WorkersSeen {
  readonly seen: number;
  /** When any worker was seen last, ISO 8601. */
  readonly lastSeenAt: string | null;
  /** Why one of them, or the server, cannot store responses, and since when; null if all can. */
  readonly cannotStore: string | null;
  readonly cannotStoreSince: string | null;
}

/** How many workers have been seen within the last minute, when any was seen last, and what keeps them from storing. */
export async function readWorkers(db: NodePgDatabase): Promise<WorkersSeen> {
  const isSeen = sql`${workers.seen_at} > clock_timestamp() - interval '1 minute'`;
  const refused = sql`filter (where ${isSeen} and ${workers.cannot_store} is not null)`;
  const [row] = await db
    .select({
      seen: sql`count(*) filter (where ${isSeen})`.mapWith(Number),
      lastSeenAt: sql<string | null>`${isoText(sql`max(${workers.seen_at})`)}`,
      cannotStore: sql<string | null>`case
        when current_setting('transaction_read_only')::boolean
        then 'Postgres: the server is read-only'
        else (array_agg(${workers.cannot_store} order by ${workers.cannot_store_since}) ${refused})[1] end`,
      cannotStoreSince: sql<string | null>`${isoText(sql`min(${workers.cannot_store_since}) ${refused}`)}`,
    })
    .from(workers);
  return row ?? { seen: 0, lastSeenAt: null, cannotStore: null, cannotStoreSince: null };
}
