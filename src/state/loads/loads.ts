import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Position } from '../../core/position.ts';
import { forEachCount } from '../../core/record-counts.ts';
import { type Preparing, runPrepared, statement } from '../../postgres/prepared.ts';
import type { WindowState } from '../request.ts';
import { takeId } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { WINDOW_TRANSITIONS } from '../windows/transitions.ts';
import type { endingWindow } from '../windows/windows.ts';
import type { Lock } from './locks.ts';

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
  const result = await lockWindow(tx, {
    windowId,
    storable: WINDOW_TRANSITIONS.store.from,
    locks: JSON.stringify(rows),
  });
  return result.rows[0] ?? null;
}

/**
 * The locks are those of `takeLocks`; without a window in a state that `storable` has, nothing is locked. The states are a
 * value, so that no plan looks for the window in the index of the open ones.
 */
const lockWindow = statement<
  { windowId: number; storable: readonly WindowState[]; locks: string },
  BegunLoad & Record<string, unknown>
>`
  with open as materialized (
    select from_date::text as "from", to_date::text as "to", instruments, variant
      from ${windows} where id = ${'windowId'}::bigint and state = any (${'storable'}::text[]) for update
  ), locked as materialized (
    select case when shared then pg_advisory_xact_lock_shared(key) else pg_advisory_xact_lock(key) end from (
      select hashtextextended("lock"->>'name', 0) as key, ("lock"->>'shared')::boolean as shared
        from jsonb_array_elements((select ${'locks'}::jsonb from open)) as "lock" order by 1
    ) as keys
  )
  select "from", "to", instruments, variant, nextval(pg_get_serial_sequence('etl.loads', 'id'))::float8 as "loadId",
         (select count(*) from locked) as locks
    from open`;

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

// The commit of each load is reported on the channel `eod`, with the days of each table that it changed: LISTEN eod.

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
    /** From which it is recognized that the same response comes again; not given if it is to be read then. */
    readonly digest?: string | undefined;
    /** Given if a person accepted a withdrawal of the window: how many rows were withdrawn, and of which day. */
    readonly accepted?: { readonly withdrawn: number; readonly day: string | null };
  },
  /** Ends the window, in the same statement. */
  ending?: ReturnType<typeof endingWindow>,
): Promise<void> {
  const { accepted, written, digest = null } = load;
  const { from, to } = spanChangedDays(written);
  const tables = JSON.stringify(written.map(reportedTable));
  const window = ending?.returning() ?? tx.select().from(windows).where(eq(windows.id, load.windowId));
  await runPrepared(
    tx,
    sql`
    with w as ${window}, accepted as (
      select ${accepted === undefined ? null : accepted.withdrawn}::bigint as withdrawn, ${accepted?.day ?? null}::date as day
    ), inserted as (
      insert into ${loads} (id, window_id, run_id, operation, exchange, from_date, to_date, instruments, variant, is_filtered,
        fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn,
        position, fetched_at, changed_from, changed_to, digest, committed_at, state)
      select ${load.loadId}, w.id, w.run_id, w.operation, w.exchange, coalesce(accepted.day, w.from_date),
             coalesce(accepted.day, w.to_date), w.instruments, w.variant, w.is_filtered,
             counts.*, ${load.position}::timestamptz, ${load.fetchedAt.toISOString()}, ${from}::date, ${to}::date,
             ${digest}::text, next.committed_at, next.state
        from w, accepted, etl.next_state() next
       cross join lateral (
         select w.fetched, w.inserted, w.updated, w.unchanged, w.stale, w.duplicate, w.rejected, w.withdrawn
          where accepted.withdrawn is null
         union all
         select 0, 0, 0, 0, 0, 0, 0, accepted.withdrawn where accepted.withdrawn is not null
       ) counts
      returning state, run_id, operation, exchange
    )
    select pg_notify('eod', json_build_object('state', state, 'run', run_id, 'operation', operation,
             'exchange', exchange, 'tables', ${tables}::json)::text)
      from inserted`,
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
    with load as materialized (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as row("loadId" bigint, "responseId" bigint, "from" date, "to" date, tables json)
    ), inserted as (
      insert into ${loads} (id, window_id, run_id, operation, exchange, from_date, to_date, instruments, variant, is_filtered,
        position, fetched_at, changed_from, changed_to, committed_at, state)
      select load."loadId", w.id, w.run_id, r.operation, r.exchange, r.from_date, r.to_date, r.instruments, r.variant,
             r.is_filtered, r.position, r.fetched_at, load."from", load."to", next.committed_at,
             next.state + row_number() over (order by r.position) - 1
        from etl.next_state() next, ${windows} w, load join ${responses} r on r.id = load."responseId"
       where w.id = ${windowId}
      returning id, state, run_id, operation, exchange
    )
    select pg_notify('eod', json_build_object('state', state, 'run', run_id, 'operation', operation,
             'exchange', exchange, 'tables', load.tables)::text)
      from inserted join load on load."loadId" = inserted.id`);
}

/** What the nightly runs of a day have changed, by operation and exchange: the days of the rows. */
export function readNightChanges(db: NodePgDatabase, day: Day) {
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
