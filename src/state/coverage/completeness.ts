import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { ClientBase } from 'pg';
import { type Clock, reachOfSource } from '../../core/clock.ts';
import { type Config, loadConfig } from '../../core/config.ts';
import type { Day, DayRange } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { dueMinutes } from '../../declaration/night-times.ts';
import {
  expectedVariants,
  isByInstrument,
  isQuarterly,
  partsOf,
  partVariant,
  SCHEDULED_WEEKDAYS,
} from '../../declaration/operation.ts';
import { coveredSets, isDataSet, operations } from '../../operations/registry.ts';
import { type RequestSettings, scheduledPairs } from '../../operations/requested.ts';
import { addDescription } from '../schema/describe.ts';
import { expectations } from '../schema/knowledge.ts';
import type { GapReason } from './gap-reasons.ts';

export type { GapReason };

// Whether a trading day is stored, and if not, why, is said by one function of the database, `etl.session_states`
// (migrations/repeatable/completeness.sql). It compares coverage with `etl.expectations`, which is written here.

/** Which operations and exchanges to include. */
interface PairScope {
  /**
   * Trading days of these are expected from the first stored one on, or else as far back as the source reaches: of what
   * `etl.expectations` says that the schedules request, or of these pairs. Named pairs are expected also where nothing
   * was ever requested with a key.
   */
  readonly expected: 'scheduled' | readonly Pair[];
  /** Include whatever else was ever requested or imported, from its first to its last stored trading day. */
  readonly others: boolean;
}

/** Which of their trading days to include. */
export interface CompletenessScope extends PairScope {
  /** First and last day, instead of the range of each pair. */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  /** Coverage of older days is not read: fast on years of history. By default that of days before `from`. */
  readonly since?: Day | undefined;
}

/** What is expected of each data set with these settings. */
function listExpectations(settings: RequestSettings): (typeof expectations.$inferInsert)[] {
  const scheduled = scheduledPairs(settings);
  return coveredSets.map((dataSet) => {
    const variants = expectedVariants(dataSet);
    const parts = partsOf(dataSet);
    return {
      operation: dataSet.name,
      days: variants === null ? 'none' : isQuarterly(dataSet) ? 'quarters' : 'sessions',
      variants,
      parts: parts === undefined ? null : parts.values.map((value) => partVariant(parts, value)),
      is_by_instrument: isByInstrument(dataSet),
      is_of_each_instrument: isByInstrument(dataSet),
      is_empty_normal: dataSet.emptyIsNormal,
      weekday: dataSet.schedule === null ? null : SCHEDULED_WEEKDAYS[dataSet.schedule.on],
      exchanges: scheduled
        .filter(({ operation }) => operation === dataSet.name)
        .map(({ exchange }) => exchange),
    };
  });
}

/** Makes `etl.expectations` what the data sets declare and these settings request; writes nothing where it is. */
export async function writeExpectations(db: NodePgDatabase, settings: RequestSettings): Promise<void> {
  const rows = JSON.stringify(listExpectations(settings));
  await db.execute(sql`
    delete from ${expectations}
     where operation not in (select w.operation from jsonb_populate_recordset(null::${expectations}, ${rows}::jsonb) w)`);
  await db.execute(sql`
    insert into ${expectations} (
      select * from jsonb_populate_recordset(null::${expectations}, ${rows}::jsonb) except table ${expectations})
    on conflict (operation) do update set
      (days, variants, parts, is_by_instrument, is_of_each_instrument, is_empty_normal, weekday, exchanges) =
      (excluded.days, excluded.variants, excluded.parts, excluded.is_by_instrument, excluded.is_of_each_instrument,
       excluded.is_empty_normal, excluded.weekday, excluded.exchanges)`);
}

/**
 * Compares what these settings request with what is expected.
 *
 * @returns what only this process requests, and what is expected, and this process does not request; null if they are the same.
 */
export async function compareRequested(db: NodePgDatabase, settings: RequestSettings) {
  const expected = (await readScheduledPairs(db)).filter(({ operation }) => isDataSet(operation));
  const requested = scheduledPairs(settings);
  const without = (some: readonly Pair[], others: readonly Pair[]) => {
    const names = new Set(others.map(pairName));
    return some.filter((pair) => !names.has(pairName(pair)));
  };
  const difference = { onlyHere: without(requested, expected), onlyExpected: without(expected, requested) };
  return difference.onlyHere.length + difference.onlyExpected.length === 0 ? null : difference;
}

/** The operations and exchanges that the schedules request, as they were stored last. */
async function readScheduledPairs(db: NodePgDatabase): Promise<Pair[]> {
  const { rows } = await db.execute<Pair & Record<string, unknown>>(sql`
    select operation, exchange from ${expectations}, unnest(exchanges) as exchange order by operation, exchange`);
  return rows;
}

/** The names of the operations that the schedules request for some exchange. */
export const readRequestedNames = async (db: NodePgDatabase): Promise<ReadonlySet<string>> =>
  new Set((await readScheduledPairs(db)).map(({ operation }) => operation));

/** What the functions of the database need to know of the settings, as JSON: `settings` of `etl.session_states`. */
const settingsText = (config: Config) =>
  JSON.stringify({
    zone: config.EOD_TIMEZONE,
    dueMinutes: Object.fromEntries(
      operations.map((operation) => [operation.name, dueMinutes(operation, config)]),
    ),
    lookbackSessions: config.EOD_LOOKBACK_SESSIONS,
    historyDays: reachOfSource(config, null).historyDays,
    instrumentLimit: config.EOD_INSTRUMENT_LIMIT,
    hasKey: config.EOD_ACCESS_KEY !== undefined,
  });

/** The pairs that are named, as JSON; null: those that are scheduled. */
const namedPairs = ({ expected }: PairScope) =>
  expected === 'scheduled'
    ? null
    : JSON.stringify(expected.map(({ operation, exchange }) => ({ operation, exchange })));

/**
 * The trading days of a scope, as a table of a query. Postgres inlines the function: the values of a query that is not
 * prepared, and the constants of a view, are known when it is planned.
 *
 * @param now the moment as of which to look, in milliseconds since the epoch; null: when the query runs.
 */
function sessionStates(config: Config, scope: CompletenessScope, now: number | null): SQL {
  const { from = null, to = null, since = null } = scope;
  const { asOf } = reachOfSource(config, now);
  const instruments = config.EOD_INSTRUMENTS?.map((name) => JSON.stringify(name)).join(',');
  return sql`etl.session_states(
    ${namedPairs(scope)}::jsonb, ${scope.others}::boolean, ${from}::date, ${to}::date, ${since}::date,
    coalesce(${asOf === null ? null : new Date(asOf).toISOString()}::timestamptz, statement_timestamp()),
    ${instruments === undefined ? null : `{${instruments}}`}::text[], ${settingsText(config)}::jsonb)`;
}

/** The settings with which a database is migrated by default. */
export const DEFAULT_SETTINGS: Config = loadConfig({});

const COMMENT =
  'Every trading day that an operation should have for an exchange, and whether it is stored: from the first stored trading day on, or, if there is none, as far back as the source reaches.';

const COLUMN_COMMENTS: Readonly<Record<string, string>> = {
  exchange: 'Exchange.',
  operation: 'Operation of the source.',
  day: 'Trading day; operations without dates, and those that are requested part by part, have one row, of the last trading day.',
  state: 'complete; missing: it should be stored; pending: it is too early for it.',
  reason:
    'Why it is not complete: not_requested, failed, count_mismatch (the response states more records than it has), blocked, beyond_history (further back than the source reaches), not_imported (it is not requested, and no file covers the day), not_published, empty (the source listed nothing), partial (only some instruments or parts are stored); null when complete.',
  detail: 'How many companies are stored, and what the source or the failure said, if anything.',
  records: 'Records of the trading day in the responses.',
  checked_at: 'When the trading day was last requested; null when never.',
  due: 'When its data is due.',
  arrived: 'When its first records were stored; null if none were.',
  responded:
    'For how many instruments there is a response; null where it is not requested instrument by instrument.',
  requested:
    'How many instruments the settings request; null where it is not requested instrument by instrument.',
  share: 'Which part of it is stored, from 0 to 1; null where that is not known.',
};

addDescription({ name: 'completeness', kind: 'view', comment: COMMENT, columns: COLUMN_COMMENTS });

/** The columns of the view, in its order. */
const COLUMNS = Object.keys(COLUMN_COMMENTS).join(', ');

/** Creates the view etl.completeness or brings it up to date with the settings; writes nothing if it is up to date. */
export async function writeCompletenessView(client: ClientBase, settings: Config): Promise<void> {
  const states = sessionStates(settings, { expected: 'scheduled', others: true }, null).inlineParams();
  const query = `select ${COLUMNS} from ${new PgDialect().sqlToQuery(states).sql}`;
  // Postgres stores views in a normalized form, so the comparison is done in SQL.
  await client.query(`create or replace temp view eod_completeness_wanted as ${query}`);
  const compared = await client.query<{ same: boolean }>(
    `select coalesce(pg_get_viewdef(to_regclass('etl.completeness')), '')
       = pg_get_viewdef('pg_temp.eod_completeness_wanted'::regclass) as same`,
  );
  await client.query('drop view pg_temp.eod_completeness_wanted');
  if (compared.rows[0]?.same === true) return;
  await client.query(`create or replace view etl.completeness as ${query}`);
}

/** One trading day of one operation and exchange, as the view shows it. */
export interface TradingDayState extends Pair {
  readonly day: Day;
  /** `pending`: it is too early for it. */
  readonly state: 'complete' | 'missing' | 'pending';
  readonly reason: GapReason | null;
  readonly detail: string | null;
  /** When its data is due, in milliseconds since the epoch. */
  readonly due: number;
}

/** The same with the number of its records. */
interface TradingDayRecords extends TradingDayState {
  readonly records: number;
}

/** The clock and settings of the query, and the database. */
export interface CompletenessContext {
  readonly config: Config;
  readonly clock: Clock;
  readonly db: { readonly drizzle: NodePgDatabase };
}

/** The trading days of a scope as a table of a query, as of the context's clock and settings. */
export const tradingDayStatesIn = ({ config, clock }: CompletenessContext, scope: CompletenessScope) =>
  sessionStates(config, scope, clock.now());

/** The pairs of a scope as a table of a query: operation, exchange, is_scheduled. */
export const expectedPairsIn = ({ config }: Pick<CompletenessContext, 'config'>, scope: PairScope) =>
  sql`etl.expected_pairs(${namedPairs(scope)}::jsonb, ${scope.others}::boolean, ${settingsText(config)}::jsonb)`;

/** The pairs of a scope, by their names; none whose operation this process does not know. */
export async function listExpectedPairs(context: CompletenessContext, scope: PairScope): Promise<Pair[]> {
  const result = await context.db.drizzle.execute<Pair & Record<string, unknown>>(
    sql`select operation, exchange from ${expectedPairsIn(context, scope)} p order by (operation || ' ' || exchange) collate "C"`,
  );
  return result.rows.filter(({ operation }) => isDataSet(operation));
}

// Not drizzle selects: years of history are tens of thousands of rows, and mapping them one by one would triple the
// processor time that this takes here.

/** Every trading day of a scope, by operation, exchange and day. */
export async function readCompleteness(
  context: CompletenessContext,
  scope: CompletenessScope,
): Promise<TradingDayState[]> {
  const result = await context.db.drizzle.execute<Record<string, unknown> & TradingDayState>(sql`
    select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, state, reason, detail,
           1000 * extract(epoch from due)::float8 as due
      from ${tradingDayStatesIn(context, scope)} s order by operation, exchange, s.day`);
  return result.rows.filter(({ operation }) => isDataSet(operation));
}

/** The same with the number of records, for which all coverage of the trading days is read. */
export async function readTradingDayRecords(
  context: CompletenessContext,
  scope: CompletenessScope,
): Promise<TradingDayRecords[]> {
  const result = await context.db.drizzle.execute<Record<string, unknown> & TradingDayRecords>(sql`
    select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, state, reason, detail,
           1000 * extract(epoch from due)::float8 as due, records::float8 as records
      from ${tradingDayStatesIn(context, scope)} s order by operation, exchange, s.day`);
  return result.rows.filter(({ operation }) => isDataSet(operation));
}

/**
 * How far the data of each pair of a scope reaches: the last trading day of which anything is loaded, and the first one
 * whose data may still be published.
 */
export async function readProgress(context: CompletenessContext, scope: CompletenessScope) {
  const result = await context.db.drizzle.execute<
    Record<string, unknown> & Pair & { watermark: Day | null; awaited: Day | null }
  >(sql`
    select operation, exchange, to_char(max(day) filter (where found = 'loaded'), 'YYYY-MM-DD') as watermark,
           to_char(min(day) filter (where found = 'not_published'), 'YYYY-MM-DD') as awaited
      from ${tradingDayStatesIn(context, scope)} s group by operation, exchange`);
  return result.rows;
}

/**
 * How many hours after it was due the first data of each trading day arrived, 0 if before; of trading days that have
 * data.
 */
export async function readArrivals(
  context: CompletenessContext,
  expected: readonly Pair[],
  { from, to }: DayRange,
): Promise<(Pair & { readonly day: Day; readonly hours: number })[]> {
  const scope = { expected, others: false, from, to };
  const result = await context.db.drizzle.execute<
    Pair & Record<string, unknown> & { day: Day; hours: number }
  >(sql`
    select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, greatest(0, extract(epoch from arrived - due) / 3600)::float8 as hours
      from ${tradingDayStatesIn(context, scope)} s where arrived is not null order by s.day`);
  return result.rows;
}
