import { eq, inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from './schema/columns.ts';
import { loads, runs, windows } from './schema/work.ts';

// Every load that was committed has a row in etl.loads, and a number of its own there: its state. States
// are in the order of the commits, so whoever sees a state sees all before it, and none after it.

/** The number of a load that is beginning; the rows it writes carry it. */
export async function nextLoadId(tx: NodePgDatabase): Promise<number> {
  const found = await tx.execute<{ id: number }>(
    sql`select nextval(pg_get_serial_sequence('etl.loads', 'id'))::int as id`,
  );
  return found.rows[0]?.id ?? 0;
}

/**
 * Writes the row of a load, with the next state. Must be the last statement before the commit: until then
 * other loads wait here, so that no state is given out before the one below it is committed.
 */
export async function insertLoad(
  tx: NodePgDatabase,
  load: { readonly loadId: number; readonly windowId: number; readonly fetchedAt: Date },
): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended('eod states', 0))`);
  // A statement of its own, because what it reads has to be what is committed after the wait.
  await tx.execute(sql`
    insert into ${loads} (id, window_id, run_id, operation, exchange, from_date, to_date, instruments, variant, filtered,
      fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn, fetched_at, committed_at, state)
    select ${load.loadId}, w.id, w.run_id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.variant,
      w.filtered, w.fetched, w.inserted, w.updated, w.unchanged, w.stale, w.duplicate, w.rejected, w.withdrawn,
      ${load.fetchedAt.toISOString()}, greatest(clock_timestamp(), last.committed_at), coalesce(last.state, 0) + 1
      from ${windows} w left join lateral (
        select state, committed_at from ${loads} order by state desc limit 1) last on true
     where w.id = ${load.windowId}`);
}

/** A state of the tables of `market`: all loads up to this one were committed, and none after it. */
interface StoredState {
  /** 0 before the first load. */
  readonly state: number;
  /** When it was committed, ISO 8601 with all digits; null before the first load. */
  readonly committedAt: string | null;
}

const BEFORE_ALL: StoredState = { state: 0, committedAt: null };

const asStoredState = { state: loads.state, committedAt: isoText(sql`${loads.committed_at}`) };

/** A state by its number; 0 is the one before the first load. Null where there is none of this number. */
export async function readState(db: NodePgDatabase, state: number): Promise<StoredState | null> {
  if (state === 0) return BEFORE_ALL;
  const [found] = await db.select(asStoredState).from(loads).where(eq(loads.state, state));
  return found ?? null;
}

/** The last state committed by a moment; the present one where none is given. */
export async function stateAt(db: NodePgDatabase, moment: string | null): Promise<StoredState> {
  const [found] = await db
    .select(asStoredState)
    .from(loads)
    .where(
      sql`${loads.state} = ${moment === null ? sql`market.state()` : sql`market.state(${moment}::timestamptz)`}`,
    );
  return found ?? BEFORE_ALL;
}

/** The states before and after each of these runs: before its first load and after its last. */
export async function statesOfRuns(
  db: NodePgDatabase,
  runIds: readonly number[],
): Promise<{ runId: number; before: number; after: number }[]> {
  // A run that loaded nothing changed nothing: before and after are the state at its end.
  const atEnd = sql`market.state(coalesce(${runs.finished_at}, clock_timestamp()))`;
  return db
    .select({
      runId: runs.id,
      before: sql`coalesce(min(${loads.state}) - 1, ${atEnd})`.mapWith(Number),
      after: sql`coalesce(max(${loads.state}), ${atEnd})`.mapWith(Number),
    })
    .from(runs)
    .leftJoin(loads, eq(loads.run_id, runs.id))
    .where(inArray(runs.id, [...runIds]))
    .groupBy(runs.id);
}
