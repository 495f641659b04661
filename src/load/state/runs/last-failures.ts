import { and, desc, eq, inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Pair } from '../../../core/exchanges.ts';
import { isoText } from '../schema/columns.ts';
import { accessKeys } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { callsSource } from '../windows/windows.ts';

// What the newest runs show about the source and the last night.

/** So many of the newest runs that call the source are looked at, besides those that are open. */
const RECENT_RUNS = 10;

/** A source that was down is taken as down for this long, if it was not called since. */
const OUTAGE_STANDS = sql`interval '1 day'`;

/** What the last calls got, if it was no response: why, since when, and the run whose calls these were. */
export interface SourceOutage {
  readonly runId: number;
  readonly cause: string;
  /** ISO 8601. */
  readonly since: string;
  /** True if its run goes on, and tries the source again. */
  readonly isOpen: boolean;
}

/**
 * The outage of the source that the last calls show: windows of a run that were begun after the last response to any
 * window, and that all failed without a line of the source. Null if it responds, as far as is known.
 *
 * @param attempts how many tries of these windows show it.
 */
export async function readSourceOutage(db: NodePgDatabase, attempts: number): Promise<SourceOutage | null> {
  const found = await db.execute<SourceOutage & Record<string, unknown>>(sql`
    with recent as (
      select ${runs.id}, ${runs.state} from ${runs}
       where ${runs.id} in (
               select ${runs.id} from ${runs} where ${callsSource()} order by ${runs.id} desc limit ${RECENT_RUNS})
          or (${runs.state} in ('running', 'paused') and ${callsSource()})
    ), responded as (
      select max(w.finished_at) as at from ${windows} w
       where w.run_id in (select id from recent)
         and (w.state in ('loaded', 'empty') or w.diagnostic is not null)
    )
    select w.run_id::int as "runId", r.state in ('running', 'paused') as "isOpen", ${isoText(sql`min(w.started_at)`)} as since,
           (array_agg(w.error order by w.attempts desc, w.id desc))[1] as cause
      from ${windows} w join recent r on r.id = w.run_id cross join responded
     where w.error is not null
       and w.diagnostic is null
       and (w.state = 'failed' or (w.state in ('pending', 'running') and w.retry_at is not null))
       and w.started_at > coalesce(responded.at, '-infinity')
       and coalesce(w.finished_at, w.retry_at) > clock_timestamp() - ${OUTAGE_STANDS}
     group by w.run_id, r.state
    having sum(w.attempts) >= ${attempts}
     order by w.run_id desc limit 1`);
  return found.rows[0] ?? null;
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
export async function failuresOfNewestNight(db: NodePgDatabase): Promise<readonly NightFailure[]> {
  const found = await db.execute<Omit<NightFailure, 'pair'> & Partial<Pair> & Record<string, unknown>>(sql`
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
  return found.rows.map(({ runId, since, operation, exchange, reason, isLoadedSince }) => ({
    runId,
    since,
    pair: operation == null || exchange == null ? null : { operation, exchange },
    reason,
    isLoadedSince,
  }));
}

/** The newest run with windows that were blocked because the source refuses a key; null if there is none. */
export async function runStoppedByKey(db: NodePgDatabase, keyHash: string): Promise<number | null> {
  const newest = db
    .select({ id: runs.id })
    .from(runs)
    .where(callsSource())
    .orderBy(desc(runs.id))
    .limit(RECENT_RUNS);
  const [run] = await db
    .select({ id: windows.run_id })
    .from(windows)
    .innerJoin(accessKeys, eq(accessKeys.diagnostic, windows.diagnostic))
    .where(
      and(eq(accessKeys.key_hash, keyHash), eq(windows.state, 'blocked'), inArray(windows.run_id, newest)),
    )
    .orderBy(desc(windows.run_id))
    .limit(1);
  return run?.id ?? null;
}
