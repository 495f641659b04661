import { eq, inArray, max, min, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { runs } from '../schema/work.ts';

/** A state of the tables of `market`: all loads up to it were committed, and none after it. */
interface StoredState {
  /** 0 before the first load. */
  readonly stateNumber: number;
  /** When it was committed, ISO 8601 with all digits; null before the first load. */
  readonly committedAt: string | null;
}

const BEFORE_ALL: StoredState = { stateNumber: 0, committedAt: null };

const storedState = { stateNumber: loads.state, committedAt: isoText(sql`${loads.committed_at}`) };

/** The number of the last state that was committed by a moment; of the current one if that is null. */
export async function readStateNumber(db: NodePgDatabase, moment: string | null): Promise<StoredState> {
  const [row] = await db
    .select(storedState)
    .from(loads)
    .where(
      eq(loads.state, moment === null ? sql`market.state()` : sql`market.state(${moment}::timestamptz)`),
    );
  return row ?? BEFORE_ALL;
}

/** The states before the first load and after the last load of each of these runs. */
export async function readRunStateNumbers(
  db: NodePgDatabase,
  runIds: readonly number[],
): Promise<{ runId: number; before: number; after: number }[]> {
  // For a run that loaded nothing, both are the state at its end.
  const atEnd = sql`market.state(coalesce(${runs.finished_at}, clock_timestamp()))`.mapWith(Number);
  const rows = await db
    .select({ runId: runs.id, first: min(loads.state), last: max(loads.state), atEnd })
    .from(runs)
    .leftJoin(loads, eq(loads.run_id, runs.id))
    .where(inArray(runs.id, [...runIds]))
    .groupBy(runs.id);
  return rows.map(({ runId, first, last, atEnd }) => ({
    runId,
    before: first === null ? atEnd : first - 1,
    after: last ?? atEnd,
  }));
}

/** The server's time, ISO 8601 with all digits, as in `committedAt`. */
export async function readServerMoment(db: NodePgDatabase): Promise<string> {
  const [row] = await db.select({ now: isoText(sql`now`) }).from(sql`clock_timestamp() as now`);
  if (row === undefined) throw new Error('a select of one row returned none');
  return row.now;
}
