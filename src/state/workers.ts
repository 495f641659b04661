import { hostname } from 'node:os';
import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { firstItem } from '../core/iterables.ts';
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
  await db.execute(sql`
    insert into ${workers} as stored (worker, cannot_store, cannot_store_since)
    select ${worker}, problem, case when problem is not null then clock_timestamp() end
      from (select ${problem}::text as problem) noted
    on conflict (worker) do update
       set seen_at = clock_timestamp(), cannot_store = excluded.cannot_store,
           cannot_store_since = case when excluded.cannot_store is not null
             then coalesce(stored.cannot_store_since, excluded.cannot_store_since) end`);
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
  const { rows } = await db.execute<{ [Name in keyof WorkersSeen]: WorkersSeen[Name] }>(sql`
    select count(*) filter (where is_seen)::int as seen, ${isoText(sql`max(seen_at)`)} as "lastSeenAt",
           case when current_setting('transaction_read_only')::boolean then 'Postgres: the server is read-only'
             else (array_agg(cannot_store order by cannot_store_since) filter (where cannot_now))[1] end as "cannotStore",
           ${isoText(sql`min(cannot_store_since) filter (where cannot_now)`)} as "cannotStoreSince"
      from ${workers}
     cross join lateral (select seen_at > clock_timestamp() - interval '1 minute' as is_seen) s
     cross join lateral (select is_seen and cannot_store is not null as cannot_now) c`);
  return firstItem(rows);
}
