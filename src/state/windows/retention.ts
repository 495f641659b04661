import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Database } from '../../postgres/database.ts';
import { transaction } from '../../postgres/transaction.ts';
import { daysAgo } from '../schema/columns.ts';
import { rejectedRecords } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';

/** How many windows are deleted in one transaction, so that none holds many locks for long. */
const BATCH = 5_000;

/** The condition that a run ended more than so many days ago, and that nothing is left to do for it. */
const isOldRun = (days: number): SQL => sql`
  r.state in ('completed', 'failed', 'cancelled') and r.finished_at < ${daysAgo(days)} and r.follow_up not in ('due', 'night')`;

/**
 * The condition that nothing refers to a window: no kept response, whose replay names its window; no reject; nothing
 * that is suspicious; and no imported file, which would be imported again.
 */
const isUnused: SQL = sql`
  w.suspicious is null and w.unsettled is null
  and not (w.source_hash is not null and w.state in ('loaded', 'empty'))
  and not exists (select from ${responses} a where a.window_id = w.id and a.hash is not null)
  and not exists (select from ${rejectedRecords} j where j.window_id = w.id)`;

const oldWindows = (days: number): SQL => sql`
  select w.id from ${windows} w join ${runs} r on r.id = w.run_id where ${isOldRun(days)} and ${isUnused}`;

/** Selects the runs that ended more than so many days ago of which no window stays. */
export const oldRuns = (days: number): SQL => sql`
  select r.id from ${runs} r where ${isOldRun(days)}
     and not exists (select from ${windows} w where w.run_id = r.id and not (${isUnused}))`;

/** How many ended runs and windows are to be deleted. */
export async function countOldRuns(db: NodePgDatabase, days: number) {
  const result = await db.execute<{ runs: number; windows: number }>(sql`
    select (select count(*) from (${oldRuns(days)}) one)::int as runs,
           (select count(*) from (${oldWindows(days)}) one)::int as windows`);
  return result.rows[0] ?? { runs: 0, windows: 0 };
}

/** Deletes windows of runs that ended more than so many days ago to which nothing refers. @returns how many. */
export async function deleteOldWindows(database: Database, days: number): Promise<number> {
  let deleted = 0;
  for (let gone = BATCH; gone === BATCH; deleted += gone) {
    gone = await transaction(database, async (tx) => {
      const removed = await tx.execute(
        sql`delete from ${windows} where id in (${oldWindows(days)} order by w.id limit ${BATCH} for update of w)`,
      );
      return removed.rowCount ?? 0;
    });
  }
  return deleted;
}
