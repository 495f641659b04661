import { and, asc, desc, eq, gt, inArray, isNotNull, notInArray, or, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { DayRange } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { forEachCount, type RecordCounts } from '../../core/record-counts.ts';
import { type Preparing, statement } from '../../postgres/prepared.ts';
import type { RunKind } from '../request.ts';
import { runs, windows } from '../schema/work.ts';
import { isOpen, OPEN_STATES } from './transitions.ts';

/** Runs that read files or kept responses instead of calling the source. No worker takes their windows. */
export const KINDS_WITHOUT_CALLS: readonly RunKind[] = ['import', 'replay', 'events'];

/** The condition that a run calls the source. */
export const callsSource = () => notInArray(runs.kind, [...KINDS_WITHOUT_CALLS]);

/** The condition that a window is left of a running run that calls the source. Its run is joined. */
const isToBeRequested = () => and(isOpen(), eq(runs.state, 'running'), callsSource());

/** How many windows of a group meet the condition. */
export const countWindows = (condition: SQL) => sql`count(*) filter (where ${condition})`.mapWith(Number);

const total = (name: 'requests' | 'bytes' | keyof RecordCounts) =>
  sql`coalesce(sum(${windows[name]}), 0)`.mapWith(Number).as(`total_${name}`);

/** Sums over the windows of a group. */
export const WINDOW_TOTALS = {
  requests: total('requests'),
  bytes: total('bytes'),
  ...forEachCount(total),
};

/** Selects a `NewWindow` with its ids. */
export const asWindow = {
  id: windows.id,
  runId: windows.run_id,
  operation: windows.operation,
  exchange: windows.exchange,
  from: windows.from_date,
  to: windows.to_date,
  instruments: windows.instruments,
  params: windows.params,
  variant: windows.variant,
  filtered: windows.is_filtered,
};

/** What a window requests; null if there is none with this id. */
export async function readWindow(db: NodePgDatabase, windowId: number) {
  const { id, run_id, operation, exchange, from_date, to_date } = windows;
  const [window] = await db
    .select({ id, runId: run_id, operation, exchange, from: from_date, to: to_date })
    .from(windows)
    .where(eq(id, windowId));
  return window ?? null;
}

/** The days and instruments of a part of a replay. */
export interface ReplayedRange {
  readonly from: string;
  readonly to: string;
  /** In upper case. */
  readonly instruments: readonly string[];
}

/** The parts of the same tables that the run of a window replays, that of the window among them. */
export async function listReplayedParts(tx: NodePgDatabase, windowId: number): Promise<ReplayedRange[]> {
  const replayed = alias(windows, 'replayed');
  return tx
    .select({ from: windows.from_date, to: windows.to_date, instruments: windows.instruments })
    .from(replayed)
    .innerJoin(
      windows,
      and(
        eq(windows.run_id, replayed.run_id),
        eq(windows.exchange, replayed.exchange),
        eq(windows.params, replayed.params),
      ),
    )
    .where(eq(replayed.id, windowId));
}

/**
 * The first open windows of a run that call the source, in the order they were planned, from the one after `after` on:
 * a backfill of years has more than should be held at once. Until the source has accepted the key in the run, there is only
 * the first one of its newest day, as for a claim.
 */
export async function listOpenWindows(
  db: NodePgDatabase,
  runId: number,
  { after, limit }: { readonly after: number; readonly limit: number },
) {
  const newest = alias(windows, 'newest');
  const firstOpen = db
    .select({ id: newest.id })
    .from(newest)
    .where(and(eq(newest.run_id, runId), inArray(newest.state, [...OPEN_STATES])))
    .orderBy(desc(newest.to_date), asc(newest.id))
    .limit(1);
  return db
    .select({
      id: windows.id,
      runId: windows.run_id,
      kind: runs.kind,
      /** The day of the run: that of a night. */
      date: runs.to_date,
      operation: windows.operation,
      exchange: windows.exchange,
      to: windows.to_date,
      instruments: windows.instruments,
      /** True if it is a piece of a window that was split. */
      piece: isNotNull(windows.parent_id).mapWith(Boolean),
      /** True if the source is preparing the response. */
      prepared: gt(windows.not_ready_ms, 0).mapWith(Boolean),
    })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .where(
      and(
        eq(windows.run_id, runId),
        isToBeRequested(),
        gt(windows.id, after),
        or(runs.is_key_accepted, eq(windows.id, firstOpen)),
      ),
    )
    .orderBy(asc(windows.id))
    .limit(limit);
}

/** The ranges of requests that an option narrowed, and that have a response: their days are not covered. */
export async function listFilteredRequests(db: NodePgDatabase): Promise<readonly (Pair & DayRange)[]> {
  const { operation, exchange, from_date, to_date } = windows;
  return db
    .selectDistinct({ operation, exchange, from: from_date, to: to_date })
    .from(windows)
    .where(and(eq(windows.is_filtered, true), inArray(windows.state, ['loaded', 'empty'])));
}

/** The names of the operations and exchanges of which a running run that calls the source has windows left. */
export async function listPairsWithOpenWindows(db: NodePgDatabase): Promise<ReadonlySet<string>> {
  const { run_id, operation, exchange } = windows;
  const pairs = await db
    .selectDistinct({ operation, exchange })
    .from(windows)
    .innerJoin(runs, eq(runs.id, run_id))
    .where(isToBeRequested());
  return new Set(pairs.map(pairName));
}

/** How many windows are open of running runs that call the source, by the kind of their run. */
export async function countOpenWindows(db: NodePgDatabase): Promise<{ kind: RunKind; open: number }[]> {
  return db
    .select({ kind: runs.kind, open: sql`count(*)`.mapWith(Number) })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .where(isToBeRequested())
    .groupBy(runs.kind);
}

/** True if the run has a window that has not ended. */
export async function hasOpenWindows(db: Preparing, runId: number): Promise<boolean> {
  return (await selectOpen(db, { runId })).rowCount === 1;
}

const selectOpen = statement<{ runId: number }, { id: string }>`
  select id from ${windows} where run_id = ${'runId'} and state in ('pending', 'running') limit 1`;

/** The exchanges of which a run has open windows of an operation. */
export async function listExchangesToLoad(
  db: NodePgDatabase,
  runId: number,
  operation: string,
): Promise<string[]> {
  const { exchange } = windows;
  const isOfRun = and(eq(windows.run_id, runId), eq(windows.operation, operation), isOpen());
  return (await db.selectDistinct({ exchange }).from(windows).where(isOfRun)).map((row) => row.exchange);
}

/** Open windows of a replay, in the order they were planned. */
export async function listReplayWindows(db: NodePgDatabase, runId: number) {
  return db
    .select(asWindow)
    .from(windows)
    .where(and(eq(windows.run_id, runId), isOpen()))
    .orderBy(asc(windows.id));
}
