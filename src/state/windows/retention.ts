import {
  and,
  eq,
  inArray,
  isNotNull,
  isNull,
  lt,
  notExists,
  notInArray,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
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
const isOldRun = (days: number) =>
  and(
    inArray(runs.state, ['completed', 'failed', 'cancelled']),
    lt(runs.finished_at, daysAgo(days)),
    notInArray(runs.follow_up, ['due', 'night']),
  );

/**
 * The condition that nothing refers to a window: no kept response, whose replay names its window; no reject; nothing
 * that is suspicious; and no imported file, which would be imported again.
 */
function isUnused(db: NodePgDatabase): SQL | undefined {
  const keptResponses = db
    .select({ id: responses.id })
    .from(responses)
    .where(and(eq(responses.window_id, windows.id), isNotNull(responses.hash)));
  const ofWindow = db
    .select({ id: rejectedRecords.id })
    .from(rejectedRecords)
    .where(eq(rejectedRecords.window_id, windows.id));
  return and(
    isNull(windows.suspicious),
    isNull(windows.unsettled),
    or(isNull(windows.source_hash), notInArray(windows.state, ['loaded', 'empty'])),
    notExists(keptResponses),
    notExists(ofWindow),
  );
}

/** Selects the windows of runs that ended more than so many days ago to which nothing refers. */
function selectOldWindows(db: NodePgDatabase, days: number) {
  const oldRuns = db.select({ id: runs.id }).from(runs).where(isOldRun(days));
  return db
    .select({ id: windows.id })
    .from(windows)
    .where(and(inArray(windows.run_id, oldRuns), isUnused(db)));
}

/** Selects the runs that ended more than so many days ago of which no window stays. */
export function selectOldRuns(db: NodePgDatabase, days: number) {
  const leftWindows = db
    .select({ id: windows.id })
    .from(windows)
    .where(and(eq(windows.run_id, runs.id), sql`not ${isUnused(db)}`));
  return db
    .select({ id: runs.id })
    .from(runs)
    .where(and(isOldRun(days), notExists(leftWindows)));
}

/** How many ended runs and windows are to be deleted. */
export async function countOldRuns(db: NodePgDatabase, days: number) {
  return {
    runs: await db.$count(selectOldRuns(db, days).as('old_runs')),
    windows: await db.$count(selectOldWindows(db, days).as('old_windows')),
  };
}

/** Deletes windows of runs that ended more than so many days ago to which nothing refers. @returns how many. */
export async function deleteOldWindows(database: Database, days: number): Promise<number> {
  let deleted = 0;
  for (let rows = BATCH; rows === BATCH; deleted += rows) {
    rows = await transaction(database, async (tx) => {
      const batch = selectOldWindows(tx, days).orderBy(windows.id).limit(BATCH).for('update');
      return (await tx.delete(windows).where(inArray(windows.id, batch))).rowCount ?? 0;
    });
  }
  return deleted;
}
