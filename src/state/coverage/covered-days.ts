import { and, asc, between, desc, eq, gte, inArray, lte, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { forEachCount } from '../../core/record-counts.ts';
import { isoText } from '../schema/columns.ts';
import { coverage, loads } from '../schema/load-results.ts';
import { responseBodies, responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';

// What is known about the days of a data set. All queries select by operation, exchange and days, as the indexes do.

/** What the responses say about each of some days, all instruments taken together. */
export function summarizeDays(
  db: NodePgDatabase,
  { pairs, from, to }: DayRange & { readonly pairs: readonly Pair[] },
) {
  const { operation, exchange, day, state, records } = coverage;
  const operations = new Set(pairs.map((pair) => pair.operation));
  const exchanges = new Set(pairs.map((pair) => pair.exchange));
  return db
    .select({
      operation,
      exchange,
      day,
      isLoaded: sql<boolean>`bool_or(${state} = 'loaded')`,
      records: sql`coalesce(sum(${records}), 0)`.mapWith(Number),
    })
    .from(coverage)
    .where(
      and(inArray(operation, [...operations]), inArray(exchange, [...exchanges]), between(day, from, to)),
    )
    .groupBy(operation, exchange, day);
}

/** The first or last day of an operation and exchange that was loaded or found to be empty; null if there is none. */
export async function readKnownDay(
  db: NodePgDatabase,
  pair: Pair,
  which: 'first' | 'last',
): Promise<Day | null> {
  const [known] = await db
    .select({ day: coverage.day })
    .from(coverage)
    .where(
      and(
        eq(coverage.operation, pair.operation),
        eq(coverage.exchange, pair.exchange),
        inArray(coverage.state, ['loaded', 'empty']),
      ),
    )
    .orderBy(which === 'first' ? asc(coverage.day) : desc(coverage.day))
    .limit(1);
  return known?.day ?? null;
}

/** A day of an operation and exchange. */
type DayOf = Pair & { readonly day: Day };

/** What is known about a day, by instrument and entry, and how many such rows there are. */
export async function readDayCoverage(
  db: NodePgDatabase,
  { operation, exchange, day }: DayOf,
  limit: number,
) {
  const isOfDay = and(
    eq(coverage.operation, operation),
    eq(coverage.exchange, exchange),
    eq(coverage.day, day),
  );
  const listed = await db
    .select({
      instrument: coverage.instrument,
      variant: coverage.variant,
      state: coverage.state,
      records: coverage.records,
      diagnostic: coverage.diagnostic,
      runId: coverage.run_id,
      windowId: coverage.window_id,
      checkedAt: isoText(sql`${coverage.checked_at}`),
    })
    .from(coverage)
    .where(isOfDay)
    .orderBy(coverage.instrument, coverage.variant)
    .limit(limit);
  return { total: await db.$count(coverage, isOfDay), listed };
}

/** No window has a longer range, so that a range around a day begins and ends within this many days of it. */
const LONGEST_WINDOW_DAYS = 400;

/** The loads that covered a day, the newest first, with their counts. */
export function readDayLoads(db: NodePgDatabase, { operation, exchange, day }: DayOf, limit: number) {
  return db
    .select({
      loadId: loads.id,
      runId: loads.run_id,
      windowId: loads.window_id,
      from: loads.from_date,
      to: loads.to_date,
      variant: loads.variant,
      instruments: loads.instruments,
      stateNumber: loads.state,
      fetchedAt: isoText(sql`${loads.fetched_at}`),
      committedAt: isoText(sql`${loads.committed_at}`),
      ...forEachCount((name) => loads[name]),
    })
    .from(loads)
    .where(
      and(
        eq(loads.operation, operation),
        eq(loads.exchange, exchange),
        between(loads.to_date, day, sql`${day}::date + ${LONGEST_WINDOW_DAYS}::int`),
        lte(loads.from_date, day),
      ),
    )
    .orderBy(desc(loads.id))
    .limit(limit);
}

/** Windows by their ids, the newest first. */
export function readWindows(db: NodePgDatabase, ids: readonly number[]) {
  return db
    .select({
      id: windows.id,
      runId: windows.run_id,
      from: windows.from_date,
      to: windows.to_date,
      state: windows.state,
      attempts: windows.attempts,
      requests: windows.requests,
      fetched: windows.fetched,
      rejected: windows.rejected,
      suspicious: windows.suspicious,
      reason: sql<string | null>`coalesce(${windows.diagnostic}, ${windows.error})`,
      finishedAt: sql<string | null>`${isoText(sql`${windows.finished_at}`)}`,
    })
    .from(windows)
    .where(inArray(windows.id, [...ids]))
    .orderBy(desc(windows.id));
}

/** The kept responses and files about a day, the newest first, without their bodies. */
export function readDayResponses(db: NodePgDatabase, { operation, exchange, day }: DayOf, limit: number) {
  return db
    .select({
      id: responses.id,
      windowId: responses.window_id,
      from: responses.from_date,
      to: responses.to_date,
      instruments: responses.instruments,
      variant: responses.variant,
      params: responses.params,
      contentType: responses.content_type,
      fetchedAt: isoText(sql`${responses.fetched_at}`),
      hash: responseBodies.hash,
      bytes: responseBodies.bytes,
      keptBytes: sql`length(${responseBodies.body})`.mapWith(Number),
      encoding: responseBodies.encoding,
    })
    .from(responses)
    .innerJoin(responseBodies, eq(responseBodies.hash, responses.hash))
    .where(
      and(
        eq(responses.operation, operation),
        eq(responses.exchange, exchange),
        between(responses.from_date, sql`${day}::date - ${LONGEST_WINDOW_DAYS}::int`, day),
        gte(responses.to_date, day),
      ),
    )
    .orderBy(desc(responses.id))
    .limit(limit);
}
