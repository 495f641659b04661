import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Position } from '../../core/position.ts';
import { forEachCount, NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { type Preparing, runPrepared, statement } from '../../postgres/prepared.ts';
import type { WindowState } from '../request.ts';
import { takeId } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { runs, windows } from '../schema/work.ts';
import type { NewWindow } from '../windows/plan.ts';
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
 * Without a window in a state that `storable` has, nothing is locked. The states are a value, so that no plan looks for the
 * window in the index of the open ones.
 */
const lockWindow = statement<
  { windowId: number; storable: readonly WindowState[]; locks: string },
  BegunLoad & Record<string, unknown>
>`
  with open as materialized (
    select from_date::text as "from", to_date::text as "to", instruments, variant
      from ${windows} where id = ${'windowId'}::bigint and state = any (${'storable'}::text[]) for update
  )
  select open.*, nextval(pg_get_serial_sequence('etl.loads', 'id'))::float8 as "loadId", etl.take_locks(${'locks'}::jsonb)
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
  return { changedFrom: first[0] ?? null, changedTo: last.at(-1) ?? null };
}

/** A load that is about to be committed. */
export interface NewLoad {
  readonly loadId: number;
  /** The position of the response, and the time of its call. */
  readonly position: Position;
  readonly fetchedAt: Date | string;
  /** Days of the rows that it changed, table by table. */
  readonly written: readonly Written[];
  /** What became of its records, as far as they are counted. */
  readonly counts: Partial<RecordCounts>;
  /** What was requested, as far as it is not what its window requested. */
  readonly requested?: Partial<Omit<NewWindow, 'exchange' | 'params'>>;
  /** From which it is recognized that the same response comes again; not given if it is to be read then. */
  readonly digest?: string | undefined;
}

/**
 * Inserts the rows of loads of a window, with the next state numbers in the order in which they are given, and reports
 * them on the channel `eod` when they are committed. Must be the last statement before the commit: other loads wait here
 * until then, so that no number is taken before the one below it is committed.
 *
 * @param ending ends the window, in the same statement; also if there is no load.
 */
export async function insertLoads(
  tx: NodePgDatabase & Preparing,
  windowId: number,
  newLoads: readonly NewLoad[],
  ending?: ReturnType<typeof endingWindow>,
): Promise<void> {
  if (newLoads.length === 0) {
    // Without a load no other one has to wait for this commit.
    await ending;
    return;
  }
  const rows = newLoads.map(({ loadId, position, fetchedAt, written, counts, requested, digest }, at) => ({
    loadId,
    position,
    fetchedAt,
    digest,
    at,
    ...requested,
    ...NO_COUNTS,
    ...counts,
    ...spanChangedDays(written),
    tables: written.map(reportedTable),
  }));
  const window = ending?.returning() ?? tx.select().from(windows).where(eq(windows.id, windowId));
  await runPrepared(
    tx,
    sql`
    with w as ${window}, load as materialized (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as load(
        "loadId" bigint, position timestamptz, "fetchedAt" timestamptz, digest text, at integer,
        operation text, "from" date, "to" date, instruments text[], variant text, filtered boolean,
        fetched bigint, inserted bigint, updated bigint, unchanged bigint, stale bigint, duplicate bigint, rejected bigint,
        withdrawn bigint, "changedFrom" date, "changedTo" date, tables json)
    ), inserted as (
      insert into ${loads} (id, window_id, run_id, operation, exchange, from_date, to_date, instruments, variant, is_filtered,
        fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn,
        position, fetched_at, changed_from, changed_to, digest, committed_at, state)
      select load."loadId", w.id, w.run_id, coalesce(load.operation, w.operation), w.exchange,
             coalesce(load."from", w.from_date), coalesce(load."to", w.to_date),
             coalesce(load.instruments, w.instruments), coalesce(load.variant, w.variant), coalesce(load.filtered, w.is_filtered),
             load.fetched, load.inserted, load.updated, load.unchanged, load.stale, load.duplicate, load.rejected, load.withdrawn,
             load.position, load."fetchedAt", load."changedFrom", load."changedTo", load.digest, next.committed_at,
             next.state + load.at
        from w, load, etl.next_state() next
      returning id, state, run_id, operation, exchange
    )
    select pg_notify('eod', json_build_object('state', inserted.state, 'run', inserted.run_id, 'operation', inserted.operation,
             'exchange', inserted.exchange, 'tables', load.tables)::text)
      from inserted join load on load."loadId" = inserted.id`,
  );
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
