import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type Day, UNKNOWN_DAY } from '../../core/days.ts';
import { EXCHANGES, type Pair, pairName } from '../../core/exchanges.ts';
import type { TableDefinition } from '../../declaration/declaration.ts';
import { countsEachDay } from '../../declaration/operation.ts';
import { dataSets, isDataSet } from '../../operations/registry.ts';
import { coverage, loads } from '../schema/load-results.ts';
import { runs, windows } from '../schema/work.ts';
import {
  type CompletenessContext,
  type CompletenessScope,
  expectedPairsIn,
  type GapReason,
  readCompleteness,
  tradingDayStatesIn,
} from './completeness.ts';

/** How recent and how complete the data of an operation and exchange is. */
export interface Freshness extends Pair {
  /** True if it was ever requested or imported, with whatever result. */
  readonly hasBeenRequested: boolean;
  /** True if schedules request it. If not, nothing is due after what was loaded. */
  readonly isScheduled: boolean;
  /** True if schedules request the operation, for whatever exchange. If not, files alone fill it. */
  readonly isRequested: boolean;
  /** The last complete trading day; null if there is none. */
  readonly lastComplete: Day | null;
  /** The last complete trading day before which none is missing; null if the first one is. */
  readonly completeTo: Day | null;
  /** The last trading day of which anything is loaded. */
  readonly lastLoaded: Day | null;
  /** The last trading day whose data should be stored by now. */
  readonly lastDue: Day | null;
  /** True if that trading day is missing. */
  readonly isLate: boolean;
  /** Why it is missing, and what the source or the failure said; null if it is not. */
  readonly reason: GapReason | null;
  readonly detail: string | null;
  /** How many of the last MISSING_OF trading days that should be stored are missing. */
  readonly missingSessions: number;
  /** How many in a row, up to the last trading day that should be stored, are missing. */
  readonly missingInARow: number;
  /** How many trading days are missing for each reason. */
  readonly missing: Readonly<Partial<Record<GapReason, number>>>;
  /** Records of the last complete trading day. */
  readonly lastRecords: number | null;
  /**
   * Median over the thirty complete trading days before it; null if there are none. Where the records have no days,
   * only trading days count whose responses were about as many days.
   */
  readonly medianRecords: number | null;
}

/** How many trading days are looked at for missing ones. */
export const MISSING_OF = 30;

/** The usual number of records is the median over this many complete trading days. */
const USUAL_OVER = 30;

/**
 * The freshness of each operation and exchange that is scheduled, was ever requested or was imported, by their names.
 * The status, the dashboard and the metrics show it.
 */
export async function readFreshness(context: CompletenessContext): Promise<Freshness[]> {
  const known = await readSummaries(context, { expected: 'scheduled', others: true });
  const late = known.filter(({ isLate }) => isLate);
  const [first] = late.map(({ lastDue }) => lastDue ?? '').sort();
  // What the source said is read for these trading days only: the summary of years of history reads two small indexes.
  const tradingDays =
    first === undefined
      ? []
      : await readCompleteness(context, { expected: late, others: false, from: first });
  const details = new Map(
    tradingDays.map((tradingDay) => [`${pairName(tradingDay)} ${tradingDay.day}`, tradingDay.detail]),
  );
  return known.map((summary) => ({
    ...summary,
    detail: details.get(`${pairName(summary)} ${summary.lastDue}`) ?? null,
  }));
}

/** The data sets whose coverage has, for each day, all records of the response that was about it. */
const countedByRange = dataSets.filter((dataSet) => !countsEachDay(dataSet)).map(({ name }) => name);

/**
 * Everything but what the source said: of each pair of a scope its last trading days, what is missing and why, and the usual
 * number of records. The trading days are computed once; the records are read of the last complete ones only.
 */
async function readSummaries(context: CompletenessContext, scope: CompletenessScope) {
  const result = await context.db.drizzle.execute<Record<string, unknown> & Omit<Freshness, 'detail'>>(sql`
    with pair as (
      select operation, exchange, is_scheduled from ${expectedPairsIn(context, scope)}
    ), session as materialized (
      select operation, exchange, day, state, reason, found, known_on, state = 'missing' as is_missing
        from ${tradingDayStatesIn(context, scope)}
    ), ordered as (
      select *, count(*) filter (where is_missing) over forward as missing_before,
             count(*) filter (where state = 'complete') over backward as complete_after,
             count(*) filter (where state <> 'pending') over backward as due_after
        from session
      window forward as (partition by operation, exchange order by day),
             backward as (partition by operation, exchange order by day desc)
    ), summary as (
      select operation, exchange,
             to_char(max(day) filter (where state = 'complete'), 'YYYY-MM-DD') as last_complete,
             to_char(max(day) filter (where state = 'complete' and missing_before = 0), 'YYYY-MM-DD') as complete_to,
             to_char(max(day) filter (where found = 'loaded'), 'YYYY-MM-DD') as last_loaded,
             to_char(max(day) filter (where state <> 'pending'), 'YYYY-MM-DD') as last_due,
             max(reason) filter (where is_missing and due_after = 1) as reason,
             count(*) filter (where is_missing and due_after <= ${MISSING_OF})::int as missing_sessions,
             count(*) filter (where is_missing and complete_after = 0)::int as missing_in_a_row,
             array_agg(known_on order by day desc)
               filter (where state = 'complete' and complete_after <= ${USUAL_OVER + 1}) as usual_days
        from ordered group by operation, exchange
    ), reasons as (
      select operation, exchange, jsonb_object_agg(reason, sessions) as missing
        from (
          select operation, exchange, reason, count(*) as sessions
            from session where is_missing group by operation, exchange, reason
        ) counted
       group by operation, exchange
    )
    select pair.operation, pair.exchange, requested.operation is not null as "hasBeenRequested",
           pair.is_scheduled as "isScheduled", expectation.exchanges <> '{}' as "isRequested",
           summary.last_complete as "lastComplete", summary.complete_to as "completeTo",
           summary.last_loaded as "lastLoaded", summary.last_due as "lastDue",
           summary.reason is not null as "isLate", summary.reason,
           coalesce(summary.missing_sessions, 0) as "missingSessions",
           coalesce(summary.missing_in_a_row, 0) as "missingInARow", coalesce(reasons.missing, '{}') as missing,
           usual.last as "lastRecords", usual.median as "medianRecords"
      from pair
      join etl.expectations expectation using (operation)
      left join etl.requested_pairs() requested using (operation, exchange)
      left join summary using (operation, exchange)
      left join reasons using (operation, exchange)
      left join lateral (
        select max(records) filter (where position = 1)::float8 as last,
               percentile_cont(0.5) within group (order by records)
                 filter (where position > 1 and range = last_range) as median
          from (
            select usual_day.position, records, range,
                   first_value(range) over (order by usual_day.position) as last_range
              from unnest(summary.usual_days) with ordinality as usual_day(day, position)
             cross join lateral etl.records_of(
               pair.operation, pair.exchange, usual_day.day, expectation.is_by_instrument, expectation.variants) as records
             -- How many days the response was about; null if that is not known any more.
             cross join lateral (
               select case when pair.operation = any (${sql.param(countedByRange)}::text[]) then (
                 select max(w.to_date - w.from_date) + 1 from ${coverage} c join ${windows} w on w.id = c.window_id
                  where c.operation = pair.operation
                    and c.exchange = pair.exchange
                    and c.day = usual_day.day
                    and c.instrument = ''
               ) else 1 end) as response(range)
          ) recorded
      ) usual on true
     order by (pair.operation || ' ' || pair.exchange) collate "C"`);
  return result.rows.filter(({ operation }) => isDataSet(operation));
}

/**
 * The newest list of a data set that has no trading days of its own: only imported files fill it, its own or those of other
 * data sets.
 */
export interface ImportedList extends Pair {
  /** The last day that it is about; null if it is about none. */
  readonly day: Day | null;
  readonly records: number;
  /**
   * True if files of other data sets bring it for each trading day, so that no trading day of its own is expected. Then its
   * records are the rows of the day.
   */
  readonly isDaily: boolean;
}

/** The newest imported lists of the data sets that are not among these, by their names. */
export async function readLists(
  { db }: CompletenessContext,
  shown: readonly Pick<Pair, 'operation'>[],
): Promise<ImportedList[]> {
  const known = new Set(shown.map(({ operation }) => operation));
  const listed = dataSets.filter(({ name }) => !known.has(name));
  const alsoInFiles = new Set(dataSets.flatMap((dataSet) => dataSet.alsoInFiles ?? []));
  const daily = listed.filter(({ shapes: [{ table }] }) => alsoInFiles.has(table));
  const others = listed.filter((dataSet) => !daily.includes(dataSet));
  const lists = [
    await readNewestImports(
      db.drizzle,
      others.map(({ name }) => name),
    ),
  ];
  for (const { name, shapes } of daily) lists.push(await readNewestDays(db.drizzle, name, shapes[0].table));
  return lists.flat().toSorted((left, right) => (pairName(left) < pairName(right) ? -1 : 1));
}

/** The newest list of each of these data sets, by exchange, as its file was imported. */
async function readNewestImports(db: NodePgDatabase, names: readonly string[]): Promise<ImportedList[]> {
  const result = await db.execute<ImportedList & Record<string, unknown>>(sql`
    select distinct on (l.operation, l.exchange) l.operation, l.exchange,
           nullif(l.to_date::text, ${UNKNOWN_DAY}) as day, l.fetched::float8 as records, false as "isDaily"
      from ${loads} l join ${runs} r on r.id = l.run_id
     where r.kind = 'import' and l.fetched > 0 and l.operation = any(${sql.param(names)}::text[])
     order by l.operation, l.exchange, l.to_date desc, l.fetched desc`);
  return result.rows;
}

/** The newest day that a table has, by exchange, as a list of a data set: files of others fill the table, too. */
async function readNewestDays(
  db: NodePgDatabase,
  operation: string,
  { name, dateColumn }: TableDefinition,
): Promise<ImportedList[]> {
  if (dateColumn === null) return [];
  const [table, day] = [sql.identifier(name), sql.identifier(dateColumn)];
  const result = await db.execute<ImportedList & Record<string, unknown>>(sql`
    select ${operation} as operation, listed.exchange, newest.day::text as day, true as "isDaily",
           (select count(*) from market.${table} r where r.exchange = listed.exchange and r.${day} = newest.day)::float8 as records
      from unnest(${sql.param(EXCHANGES)}::text[]) as listed(exchange)
     cross join lateral (select max(r.${day}) as day from market.${table} r where r.exchange = listed.exchange) newest
     where newest.day is not null`);
  return result.rows;
}

/** True if nothing was ever requested or imported. */
export function isUnused(
  sets: readonly Pick<Freshness, 'hasBeenRequested'>[],
  lists: readonly ImportedList[],
): boolean {
  return lists.length === 0 && sets.every(({ hasBeenRequested }) => !hasBeenRequested);
}
