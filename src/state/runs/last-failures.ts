import { and, desc, eq, inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Pair } from '../../core/exchanges.ts';
import { isoText } from '../schema/columns.ts';
import { sourceState } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { callsSource } from '../windows/read-windows.ts';

// What the newest runs show about the source and the last night.

/** So many of the newest runs that call the source are looked at, besides those that are open. */
const RECENT_RUNS = 10;

/** The newest run that calls the source, and whether it is open; null if there is none. */
export async function readNewestRequestingRun(
  db: NodePgDatabase,
): Promise<{ readonly runId: number; readonly isOpen: boolean } | null> {
  const [run] = await db
    .select({ runId: runs.id, isOpen: sql<boolean>`${runs.state} in ('running', 'paused')` })
    .from(runs)
    .where(callsSource())
    .orderBy(desc(runs.id))
    .limit(1);
  return run ?? null;
}

/** What failed in a run of the newest night. */
export interface NightFailure {
  readonly runId: number;
  /** When the run ended, ISO 8601. */
  readonly since: string;
  /** Null if no window failed, but the run as a whole. */
  readonly pair: Pair | null;
  readonly reason: string;
  /** True if a later run has loaded something of this operation and exchange. */
  readonly isLoadedSince: boolean;
}

/** What failed in the runs of the newest night, by operation and exchange, the newest run and the most windows first. */
export async function listNightFailures(db: NodePgDatabase): Promise<readonly NightFailure[]> {
  const result = await db.execute<Omit<NightFailure, 'pair'> & Partial<Pair> & Record<string, unknown>>(sql`
    select r.id::int as "runId", ${isoText(sql`r.finished_at`)} as since, w.operation, w.exchange,
           coalesce(mode() within group (order by coalesce(w.diagnostic, w.error)), r.error, 'no reason is known') as reason,
           exists (
             select from ${runs} m join ${windows} n on n.run_id = m.id
              where m.id > r.id
                and n.operation = w.operation
                and n.exchange = w.exchange
                and n.state in ('loaded', 'empty')) as "isLoadedSince"
      from ${runs} r left join ${windows} w on w.run_id = r.id and w.state in ('failed', 'blocked')
     where r.kind = 'nightly'
       and r.state = 'failed'
       and r.to_date = (select max(to_date) from ${runs} where kind = 'nightly')
     group by r.id, w.operation, w.exchange
     order by r.id desc, count(w.id) desc, w.operation, w.exchange`);
  return result.rows.map(({ runId, since, operation, exchange, reason, isLoadedSince }) => ({
    runId,
    since,
    pair: operation == null || exchange == null ? null : { operation, exchange },
    reason,
    isLoadedSince,
  }));
}

/** The newest run with windows that were blocked because the source refuses a key; null if there is none. */
export async function readRunStoppedByKey(db: NodePgDatabase, keyHash: string): Promise<number | null> {
  const newest = db
    .select({ id: runs.id })
    .from(runs)
    .where(callsSource())
    .orderBy(desc(runs.id))
    .limit(RECENT_RUNS);
  const [run] = await db
    .select({ id: windows.run_id })
    .from(windows)
    .innerJoin(sourceState, eq(sourceState.diagnostic, windows.diagnostic))
    .where(
      and(eq(sourceState.key_hash, keyHash), eq(windows.state, 'blocked'), inArray(windows.run_id, newest)),
    )
    .orderBy(desc(windows.run_id))
    .limit(1);
  return run?.id ?? null;
}
