import { and, type Column, eq, exists, gte, inArray, lte, max, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type Preparing, prepareOnce, runPrepared } from '../database/prepared.ts';
import type { CoverageState } from './coverage-registers.ts';
import { coverage, loads, withdrawals } from './schema/work.ts';

/** The table's name, for SQL that is built as text. */
export const COVERAGE = 'etl.coverage';

/** What is known of one session day, and, where those are asked for, of one instrument and one question. */
export interface CoverageEntry {
  readonly day: string;
  /** '' where the whole exchange was asked. */
  readonly instrument: string;
  readonly variant: string;
  readonly state: CoverageState;
  readonly records: number;
  readonly diagnostic?: string;
}

interface CoverageOwner {
  readonly operation: string;
  readonly exchange: string;
  readonly runId: number;
  readonly windowId: number | null;
  readonly coverage: readonly CoverageEntry[];
  /** Days that no longer count as loaded: their last rows were withdrawn, or records came that were not asked for. */
  readonly reopened?: readonly string[];
  /** Stored entries are replaced only if they have one of these states; without it, whatever their state. */
  readonly over?: readonly CoverageState[];
  /** Given if the source was not asked now, because a kept answer was read again. */
  readonly reread?: Reread | undefined;
}

/** A kept answer that was read again. */
export interface Reread {
  /** When the source was asked. */
  readonly askedAt: Date;
  /** The windows that have read it: coverage of other windows is from other answers, or from calls that failed. */
  readonly windows: readonly number[];
  /** Did it write rows? Then its days are loaded, whatever else is known of them. */
  readonly wroteRows: boolean;
  /** Days that are not loaded after it, whatever else is known of them: those of which it withdrew the last row, say. */
  readonly reopened: readonly string[];
}

/**
 * Records what is known of days. Except on `reopened` days, what was loaded stays `loaded` whatever a later call meets,
 * because the rows are still there. An answer that is read again changes only entries of its own, and not the time of
 * its call. Rows are written in key order, so that two writers cannot deadlock.
 */
export async function writeCoverage(db: NodePgDatabase & Preparing, owner: CoverageOwner): Promise<void> {
  const { operation, exchange, runId, windowId, coverage: entries, over, reread } = owner;
  if (entries.length === 0) return;
  // One value for each column, in the order of the declaration.
  const rows = sql`
    select ${operation}, ${exchange}, e.day, e.instrument, e.variant, e.state, e.records, e.diagnostic,
           ${runId}::bigint, ${windowId}::bigint, coalesce(${reread?.askedAt.toISOString() ?? null}::timestamptz, statement_timestamp())
      from jsonb_to_recordset(${JSON.stringify(entries)}::jsonb)
        as e(day date, instrument text, variant text, state text, records bigint, diagnostic text)
     order by e.day, e.instrument, e.variant`;
  const reopened = sql.param(owner.reopened ?? []);
  const wasLoaded = sql`(${coverage.state} = 'loaded' and ${coverage.day} <> all(${reopened}::date[]))`;
  const { day, instrument, variant } = coverage;
  const known = {
    state: sql`case when ${wasLoaded} then 'loaded' else excluded.state end`,
    records: sql`case when ${wasLoaded} and excluded.state <> 'loaded' then ${coverage.records} else excluded.records end`,
    diagnostic: sql`excluded.diagnostic`,
  };
  const { run_id, window_id, checked_at } = coverage;
  const read = sql`${window_id} = any(${sql.param(reread?.windows ?? [])}::bigint[])`;
  // A kept answer replaces only what was asked before it, as it did when it was fetched.
  const isNewer =
    reread === undefined
      ? sql`true`
      : sql`(not coalesce(${read}, false) and excluded.checked_at > ${checked_at})`;
  const newest = (column: Column) =>
    sql`case when ${isNewer} then excluded.${sql.identifier(column.name)} else ${column} end`;
  const brings = sql`${reread?.wroteRows ?? false} and excluded.state = 'loaded' and ${coverage.state} <> 'loaded'`;
  const reopens = sql`(${day} = any(${sql.param(reread?.reopened ?? [])}::date[]) and excluded.state <> 'loaded' and ${coverage.state} = 'loaded')`;
  const writing = db
    .insert(coverage)
    .select(rows)
    .onConflictDoUpdate({
      target: [coverage.operation, coverage.exchange, day, instrument, variant],
      set: {
        ...known,
        run_id: newest(run_id),
        window_id: newest(window_id),
        checked_at: newest(checked_at),
      },
      setWhere: sql`${over === undefined ? sql`true` : inArray(coverage.state, [...over])} and (${isNewer} or (${read} or ${brings} or ${reopens})
        and (${coverage.state}, ${coverage.records}, ${coverage.diagnostic}) is distinct from (${known.state}, ${known.records}, ${known.diagnostic}))`,
    });
  await runPrepared(db, writing);
}

/**
 * Days that are covered by an answer without rows are not known to be empty any more if rows were stored after it that it
 * should have withdrawn, but they were too many.
 */
export async function doubtEmptyDays(
  db: NodePgDatabase,
  doubted: {
    readonly operation: string;
    readonly exchange: string;
    readonly tables: readonly string[];
    readonly days: readonly string[];
    readonly diagnostic: string;
  },
): Promise<void> {
  const { operation, exchange, tables, days, diagnostic } = doubted;
  const wasRefused = db
    .select({ id: withdrawals.id })
    .from(withdrawals)
    .innerJoin(
      loads,
      and(eq(loads.operation, operation), eq(loads.exchange, exchange), eq(loads.place, withdrawals.place)),
    )
    .where(
      and(
        eq(withdrawals.state, 'refused'),
        inArray(withdrawals.table_name, [...tables]),
        eq(withdrawals.exchange, exchange),
        eq(withdrawals.day, coverage.day),
        eq(loads.window_id, coverage.window_id),
      ),
    );
  await db
    .update(coverage)
    .set({ state: 'failed', diagnostic })
    .where(
      and(
        eq(coverage.operation, operation),
        eq(coverage.exchange, exchange),
        sql`${coverage.day} = any(${sql.param([...days])}::date[])`,
        eq(coverage.instrument, ''),
        eq(coverage.variant, ''),
        inArray(coverage.state, ['empty', 'not_published']),
        exists(wasRefused),
      ),
    );
}

/** The entries of these days that were written by this window. */
export async function coverageOfWindow(
  db: Preparing,
  asked: {
    readonly windowId: number;
    readonly operation: string;
    readonly exchange: string;
    readonly from: string;
    readonly to: string;
  },
): Promise<CoverageEntry[]> {
  return (await selectCoverageOfWindow(db, asked)).rows;
}

const selectCoverageOfWindow = prepareOnce<
  Readonly<Record<'operation' | 'exchange' | 'from' | 'to', string>> & { readonly windowId: number },
  CoverageEntry
>(() => {
  const { operation, exchange, day, instrument, variant, state, records, window_id } = coverage;
  const value = (name: string) => sql.placeholder(name);
  return sql`
    select ${day}::text, ${instrument}, ${variant}, ${state}, ${records}::float8 from ${coverage}
     where ${operation} = ${value('operation')} and ${exchange} = ${value('exchange')}
       and ${day} between ${value('from')}::date and ${value('to')}::date and ${window_id} = ${value('windowId')}
     order by ${day}, ${instrument}, ${variant}`;
});

/** Questions about days: about a whole exchange, or about each of these instruments. */
interface AskedDays {
  readonly operation: string;
  readonly exchange: string;
  readonly days: readonly string[];
  readonly instruments: readonly string[];
  /** States that count as an answer. */
  readonly states: readonly CoverageState[];
}

/** How many answers there are to a question about a day. */
export interface AnswerCount {
  readonly day: string;
  readonly variant: string;
  /** State of the answer for the whole exchange, or null where there is none. */
  readonly whole: CoverageState | null;
  /** Answers for the whole exchange and for these instruments; of them, those with `not_published`. */
  readonly answers: number;
  readonly awaited: number;
}

const { day: dayColumn, instrument: instrumentColumn, variant: variantColumn, state: stateColumn } = coverage;
const isAwaited = sql<boolean>`${stateColumn} = 'not_published'`;

const answersTo = ({ operation, exchange, days, states }: Omit<AskedDays, 'instruments'>) =>
  and(
    eq(coverage.operation, operation),
    eq(coverage.exchange, exchange),
    // As an array, so that any number of days is one parameter.
    sql`${dayColumn} = any(${sql.param([...new Set(days)])}::date[])`,
    inArray(stateColumn, [...states]),
  );

const isAsked = (names: readonly string[]) =>
  sql`${instrumentColumn} = any(${sql.param([...names])}::text[])`;

/** Counts the answers to each question that has any. Postgres aggregates, so few rows are returned. */
export async function countAnswers(db: NodePgDatabase, asked: AskedDays): Promise<AnswerCount[]> {
  if (asked.days.length === 0) return [];
  return db
    .select({
      day: dayColumn,
      variant: variantColumn,
      whole: sql<CoverageState | null>`max(${stateColumn}) filter (where ${instrumentColumn} = '')`,
      answers: sql<number>`count(*)::int`,
      awaited: sql<number>`count(*) filter (where ${isAwaited})::int`,
    })
    .from(coverage)
    .where(and(answersTo(asked), isAsked(['', ...asked.instruments])))
    .groupBy(dayColumn, variantColumn);
}

/** Instruments that have an answer other than `not_published` to the same question about each of these days. */
export async function instrumentsAnsweredEachDay(
  db: NodePgDatabase,
  asked: AskedDays,
): Promise<{ readonly variant: string; readonly instruments: readonly string[] }[]> {
  const counted = db
    .select({ variant: variantColumn, instrument: instrumentColumn })
    .from(coverage)
    .where(and(answersTo(asked), isAsked(asked.instruments), sql`not ${isAwaited}`))
    .groupBy(variantColumn, instrumentColumn)
    .having(sql`count(*) = ${new Set(asked.days).size}`)
    .as('counted');
  return db
    .select({ variant: counted.variant, instruments: sql<string[]>`array_agg(${counted.instrument})` })
    .from(counted)
    .groupBy(counted.variant);
}

/** Instruments with an answer to a question about a day. */
interface AnswerList {
  readonly day: string;
  readonly variant: string;
  /** Is their answer `not_published`? */
  readonly awaited: boolean;
  readonly instruments: readonly string[];
}

/** Which instruments have an answer to each question about these days. */
export async function listAnswers(db: NodePgDatabase, asked: AskedDays): Promise<AnswerList[]> {
  return db
    .select({
      day: dayColumn,
      variant: variantColumn,
      awaited: isAwaited,
      instruments: sql<string[]>`array_agg(${instrumentColumn})`,
    })
    .from(coverage)
    .where(and(answersTo(asked), isAsked(asked.instruments)))
    .groupBy(dayColumn, variantColumn, isAwaited);
}

/** An answer is awaited if most instruments had none when they were asked for; a few never have one. */
const MOSTLY_AWAITED = sql`2 * count(*) filter (where ${coverage.state} = 'not_published') > count(*) filter (where ${coverage.state} in ('loaded', 'empty', 'not_published'))`;

/**
 * How far the data of an operation and exchange reaches, by the questions of these variants.
 *
 * @returns the watermark, which is the last loaded day up to `to`, and the first day from `from` on whose data
 *   is awaited; each null where there is none.
 */
export async function readProgress(
  db: NodePgDatabase,
  asked: {
    readonly operation: string;
    readonly exchange: string;
    readonly variants: readonly string[];
    readonly from: string;
    readonly to: string;
  },
): Promise<{ readonly watermark: string | null; readonly awaited: string | null }> {
  const { day, variant } = coverage;
  const chosen = and(
    eq(coverage.operation, asked.operation),
    eq(coverage.exchange, asked.exchange),
    inArray(variant, [...asked.variants]),
    lte(day, asked.to),
  );
  const [loaded] = await db
    .select({ day: max(day) })
    .from(coverage)
    .where(and(chosen, eq(coverage.state, 'loaded')));
  const [awaited] = await db
    .select({ day })
    .from(coverage)
    .where(and(chosen, gte(day, asked.from)))
    .groupBy(day, variant)
    .having(MOSTLY_AWAITED)
    .orderBy(day)
    .limit(1);
  return { watermark: loaded?.day ?? null, awaited: awaited?.day ?? null };
}

/** The last loaded day, run and call of each operation and exchange that was ever asked for. */
export function summarizeCoverage(db: NodePgDatabase) {
  const { operation, exchange } = coverage;
  return db
    .select({
      operation,
      exchange,
      lastLoaded: sql<string | null>`max(${coverage.day}) filter (where ${coverage.state} = 'loaded')`,
      lastRun: max(coverage.run_id),
      lastAskedAt: max(coverage.checked_at),
    })
    .from(coverage)
    .groupBy(operation, exchange);
}

/** The states of a day, the best first. A day that is asked for instrument by instrument has several. */
const BEST_FIRST: readonly CoverageState[] = [
  'loaded',
  'empty',
  'not_published',
  'failed',
  'blocked',
  'holiday',
];

/** The states of these days, operations and exchanges, the best first; a day that was never asked for has none. */
export async function bestStates(
  db: NodePgDatabase,
  asked: Record<'operations' | 'exchanges' | 'days', readonly string[]>,
) {
  const { operation, exchange, day, state } = coverage;
  const isOneOf = (column: Column, values: readonly string[]) => inArray(column, [...new Set(values)]);
  const found = await db
    .selectDistinct({ operation, exchange, day, state })
    .from(coverage)
    .where(
      and(isOneOf(operation, asked.operations), isOneOf(exchange, asked.exchanges), isOneOf(day, asked.days)),
    );
  const rank = (one: CoverageState) => BEST_FIRST.indexOf(one);
  return found.sort((a, b) => rank(a.state) - rank(b.state));
}

/** Exchanges for which this run asked for an operation's whole day and got no data. */
export async function exchangesWithoutData(
  db: NodePgDatabase,
  asked: { readonly runId: number; readonly operation: string; readonly day: string },
): Promise<string[]> {
  const found = await db
    .select({ exchange: coverage.exchange })
    .from(coverage)
    .where(
      and(
        eq(coverage.operation, asked.operation),
        eq(coverage.day, asked.day),
        eq(coverage.run_id, asked.runId),
        eq(coverage.instrument, ''),
        eq(coverage.variant, ''),
        inArray(coverage.state, ['not_published', 'empty']),
      ),
    )
    .orderBy(coverage.exchange);
  return found.map(({ exchange }) => exchange);
}

/**
 * A select of exchange, day, records, the time of the call and the window: the sessions that were loaded for the whole exchange. For the SQL of
 * checks, which is built as text.
 */
export function loadedSessionsSql(operation: string): string {
  return `select exchange, day, records, checked_at, window_id from ${COVERAGE}
     where operation = '${operation}' and instrument = '' and variant = '' and state = 'loaded'`;
}
