import { and, eq, inArray, isNotNull, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Position } from '../../core/position.ts';
import { forEachCount } from '../../core/record-counts.ts';
import { type Preparing, prepareOnce, runPrepared } from '../../postgres/prepared.ts';
import { nextId, takeId } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { canBegin, WINDOW_TRANSITIONS } from '../windows/transitions.ts';
import type { endingWindow } from '../windows/windows.ts';
import { type Lock, takeLocksSql } from './locks.ts';

// Every committed load has a row in etl.loads with a state number. State numbers are in the order of the commits, so a
// snapshot that has one has all before it, and none after its last one.

/** The table's name, for SQL that is built as text: rows of `market` refer to their loads. */
export const LOADS = 'etl.loads';

/** Takes the id of a load that begins; the rows that it writes carry it. */
export const nextLoadId = (tx: NodePgDatabase): Promise<number> => takeId(tx, loads);

/** A window whose response is being stored, and the id of the load. */
export interface BegunLoad extends DayRange {
  readonly loadId: number;
  readonly instruments: readonly string[];
  readonly variant: string;
}

/**
 * Begins the load of a window: locks its row until the transaction ends, so that nobody else ends it meanwhile, then
 * takes the advisory locks on the rows that it may write or withdraw, sorted, so that two loads cannot deadlock.
 *
 * @returns null if it has ended already.
 */
export async function beginLoad(
  tx: Preparing,
  windowId: number,
  rows: readonly Lock[],
): Promise<BegunLoad | null> {
  const result = await beginStatement(tx, { windowId, rows: JSON.stringify(rows) });
  return result.rows[0] ?? null;
}

const beginStatement = prepareOnce<{ windowId: number; rows: string }, BegunLoad & Record<string, unknown>>(
  () => {
    const { id, from_date, to_date, instruments, variant } = windows;
    // Without an open window, nothing is locked.
    const locks = sql`(select ${sql.placeholder('rows')}::jsonb from open)`;
    return sql`
    with open as materialized (
      select ${from_date}::text as "from", ${to_date}::text as "to", ${instruments}, ${variant}
        from ${windows} where ${id} = ${sql.placeholder('windowId')} and ${canBegin('store')} for update
    ), locked as materialized (${takeLocksSql(locks)})
    select "from", "to", instruments, variant, ${nextId(loads)}::float8 as "loadId", (select count(*) from locked) as locks from open`;
  },
);

/**
 * What a window has loaded, for the process that loaded it and did not hear of the commit because the connection broke.
 *
 * @returns null if its response was not stored.
 */
export async function readStoredLoad(db: NodePgDatabase, windowId: number) {
  const stored = [...WINDOW_TRANSITIONS.store.to];
  const [window] = await db
    .select({
      loadId: loads.id,
      counts: forEachCount((name) => windows[name]),
      state: sql<(typeof stored)[number]>`${windows.state}`,
      error: windows.error,
    })
    .from(windows)
    .leftJoin(loads, eq(loads.window_id, windows.id))
    .where(and(eq(windows.id, windowId), inArray(windows.state, stored)));
  if (window === undefined) return null;
  const { loadId, counts, state, error } = window;
  // A window that failed after its response was stored has no load.
  return { loadId: loadId ?? 0, counts, outcome: { state, error } };
}

/** The days of the rows of a table that a load changed; '-infinity' and 'infinity' if they have none. */
export interface Written {
  /** Name inside the schema `market`. */
  readonly table: string;
  readonly from: string;
  readonly to: string;
}

/** The channel on which the commit of each load is reported: LISTEN eod. */
const CHANNEL = 'eod';

/** SQL that notifies of a load that was made, and the days of each table that it changed. */
const notifying = (tables: SQL) =>
  sql`pg_notify(${CHANNEL}, json_build_object('state', state, 'run', run_id, 'operation', operation, 'exchange', exchange, 'tables', ${tables})::text)`;

/** A day as it is reported to others: null where rows have no day. */
export const reportedDay = (day: string) => (day.endsWith('infinity') ? null : day);

const reportedTable = ({ table, from, to }: Written) => ({
  table,
  from: reportedDay(from),
  to: reportedDay(to),
});

/** First and last day of the rows that a load changed; null if it changed none. */
function spanChangedDays(written: readonly Written[]) {
  const first = written.map(({ from }) => from).sort();
  const last = written.map(({ to }) => to).sort();
  return { from: first[0] ?? null, to: last.at(-1) ?? null };
}

/**
 * Inserts the row of a load, with the next state number, and reports it on the channel `eod` when it is committed. Must be
 * the last statement before the commit: other loads wait here until then, so that no number is taken before the one
 * below it is committed.
 */
export async function insertLoad(
  tx: NodePgDatabase & Preparing,
  load: {
    readonly loadId: number;
    readonly windowId: number;
    /** The position of the response, and the time of its call. */
    readonly position: Position;
    readonly fetchedAt: Date;
    /** Days of the rows that it changed, table by table. */
    readonly written: readonly Written[];
    /** SHA-256 of the response and of the code that read it; not given if the source was not requested now. */
    readonly digest?: string | undefined;
    /** Given if a person accepted a withdrawal of the window: how many rows were withdrawn, and of which day. */
    readonly accepted?: { readonly withdrawn: number; readonly day: string | null };
  },
  /** Ends the window, in the same statement. */
  ending?: ReturnType<typeof endingWindow>,
): Promise<void> {
  const { accepted, written, digest = null } = load;
  const day = accepted?.day ?? null;
  const { from, to } = spanChangedDays(written);
  const counts =
    accepted === undefined
      ? sql`w.fetched, w.inserted, w.updated, w.unchanged, w.stale, w.duplicate, w.rejected, w.withdrawn`
      : sql`0, 0, 0, 0, 0, 0, 0, ${accepted.withdrawn}::bigint`;
  const tables = written.map(reportedTable);
  const window = ending?.returning() ?? tx.select().from(windows).where(eq(windows.id, load.windowId));
  await runPrepared(
    tx,
    sql`
    with w as ${window}, made as (
    insert into ${loads} (id, window_id, run_id, operation, exchange, from_date, to_date, instruments, variant, is_filtered,
      fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn, position, fetched_at, changed_from, changed_to,
      digest, committed_at, state)
    select ${load.loadId}, w.id, w.run_id, w.operation, w.exchange, coalesce(${day}::date, w.from_date),
      coalesce(${day}::date, w.to_date), w.instruments, w.variant, w.is_filtered, ${counts},
      ${load.position}::timestamptz, ${load.fetchedAt.toISOString()}, ${from}::date, ${to}::date, ${digest}::text, next.committed_at, next.state
      from w, etl.next_state() next
    returning state, run_id, operation, exchange)
    select ${notifying(sql`${JSON.stringify(tables)}::json`)} from made`,
  );
}

/**
 * Inserts the rows of loads of responses that a replay has loaded in their order: their state numbers follow it. Like
 * `insertLoad`, call it at the end of the transaction.
 */
export async function insertLoads(
  tx: NodePgDatabase,
  windowId: number,
  newLoads: readonly {
    readonly loadId: number;
    readonly responseId: number;
    readonly written: readonly Written[];
  }[],
): Promise<void> {
  if (newLoads.length === 0) return;
  const rows = newLoads.map(({ written, ...newLoad }) => ({
    ...newLoad,
    ...spanChangedDays(written),
    tables: written.map(reportedTable),
  }));
  await tx.execute(sql`
    with made as (
    insert into ${loads} (id, window_id, run_id, operation, exchange, from_date, to_date, instruments, variant, is_filtered,
      position, fetched_at, changed_from, changed_to, committed_at, state)
    select m."loadId", w.id, w.run_id, a.operation, a.exchange, a.from_date, a.to_date, a.instruments, a.variant, a.is_filtered,
      a.position, a.fetched_at, m."from", m."to", next.committed_at, next.state + row_number() over (order by a.position) - 1
      from etl.next_state() next, ${windows} w, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as m("loadId" bigint, "responseId" bigint, "from" date, "to" date)
      join ${responses} a on a.id = m."responseId" where w.id = ${windowId}
    returning id, state, run_id, operation, exchange)
    select ${notifying(sql`m.tables`)} from made join jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as m("loadId" bigint, tables json) on m."loadId" = made.id`);
}

/** What the nightly runs of a day have changed, by operation and exchange: the days of the rows. */
export function changesOfNight(db: NodePgDatabase, day: Day) {
  const { operation, exchange, changed_from, changed_to } = loads;
  return db
    .select({
      operation,
      exchange,
      from: sql<string>`min(${changed_from})::text`,
      to: sql<string>`max(${changed_to})::text`,
    })
    .from(loads)
    .innerJoin(runs, eq(runs.id, loads.run_id))
    .where(and(eq(runs.kind, 'nightly'), eq(runs.to_date, day), isNotNull(changed_from)))
    .groupBy(operation, exchange)
    .orderBy(operation, exchange);
}
