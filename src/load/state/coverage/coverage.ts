import { and, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../../core/days.ts';
import type { Pair } from '../../../core/exchanges.ts';
import type { Place } from '../../../core/place.ts';
import { type Preparing, prepareOnce, runPrepared } from '../../database/prepared.ts';
import type { CoverageEntry, CoverageState } from '../registers.ts';
import { coverage } from '../schema/load-results.ts';
import { type DecidedDays, dayEffectsSql } from '../withdrawals.ts';

/** The table's name, for SQL that is built as text. */
export const COVERAGE = 'etl.coverage';

/** What is said of a question, where it is another window of the same operation and exchange that requested it. */
interface CoverageOfWindow extends CoverageEntry {
  readonly runId?: number;
  readonly windowId?: number;
}

/** What an answer, a failed call or a holiday says of some questions. */
interface CoverageFacts extends Pair {
  readonly runId: number;
  readonly windowId: number | null;
  /** Where the answer or call stands in the order of answers. */
  readonly place: Place;
  readonly coverage: readonly CoverageOfWindow[];
  /** Are the answer's days not loaded, whatever was before? */
  readonly doubted?: boolean;
  /** Given if what answers did with the rows of some days may have changed. */
  readonly decided?: DecidedDays | null;
}

/** The column of each register, and how the registers of a question move with those that come in: the one with the later place counts, at the same place the one that comes in. */
const moved = (() => {
  const column = (name: string) => sql`${coverage}.${sql.identifier(name)}`;
  const incoming = (name: string) => sql`excluded.${sql.identifier(name)}`;
  const choose = (names: readonly string[], condition: SQL) =>
    names.map(
      (name) => [name, sql`case when ${condition} then ${incoming(name)} else ${column(name)} end`] as const,
    );
  const isLast = sql`${incoming('last_place')} >= ${column('last_place')}`;
  const isLoaded = sql`${incoming('loaded_place')} >= coalesce(${column('loaded_place')}, '-infinity')`;
  const newest = (name: string) => [name, sql`greatest(${incoming(name)}, ${column(name)})`] as const;
  return (isDecided: SQL) => [
    ...choose(['last_place', 'last_said', 'last_records', 'last_diagnostic'], isLast),
    ...choose(['loaded_place', 'loaded_records'], isLoaded),
    newest('doubted_place'),
    ...['emptied_place', 'held_back_place'].map(
      (name) =>
        [name, sql`case when ${isDecided} then ${incoming(name)} else ${newest(name)[1]} end`] as const,
    ),
  ];
})();

/**
 * Records what an answer, a failed call or a holiday says of questions: one statement moves their registers forward
 * (registers.ts), on the newest version of each row, so that it does not matter in which order loads come here.
 * The state follows from the registers. For every question about the days that were decided it also writes which answers
 * took the last row of a day or were held back. Rows are written in key order, so that two writers cannot deadlock.
 */
export async function writeCoverage(db: NodePgDatabase & Preparing, facts: CoverageFacts): Promise<void> {
  const { operation, exchange, runId, windowId, place, coverage: entries, decided = null } = facts;
  if (entries.length === 0 && decided === null) return;
  const { day, instrument, variant } = coverage;
  const days = sql`${sql.param(decided?.days ?? null)}::date[]`;
  const operations = sql`${sql.param(decided?.operations ?? [])}::text[]`;
  const isDecided =
    decided === null
      ? sql`false`
      : sql`(${coverage.operation} = any(${operations}) and ${instrument} = '' and ${day} = any(coalesce(${days}, array[${day}])))`;
  const own = sql`
    select ${operation}::text as operation, e.day, e.instrument, e.variant, ${place}::timestamptz as place, e.state, e.records, e.diagnostic,
           e."runId" as run_id, e."windowId" as window_id
      from jsonb_to_recordset(${JSON.stringify(entries)}::jsonb)
        as e(day date, instrument text, variant text, state text, records bigint, diagnostic text, "runId" bigint, "windowId" bigint)`;
  // Of the other questions about these days, nothing is known but the effects.
  const others = sql`
    select ${coverage.operation}, ${day}, ${instrument}, ${variant}, '-infinity', 'failed', 0, null, null, null
      from ${coverage} where ${coverage.exchange} = ${exchange} and ${isDecided}
       and (${coverage.emptied_place} is not null or ${coverage.held_back_place} is not null
         or (${coverage.operation}, ${day}, ${variant}) in (select operation, day, variant from affected))
       and not exists (select from own o where (o.operation, o.day, o.instrument, o.variant) = (${coverage.operation}, ${day}, ${instrument}, ${variant}))`;
  // An answer that has one lists days in full, so it asked for no instrument in particular.
  const affected = dayEffectsSql(
    decided === null
      ? sql`false`
      : sql`a.exchange = ${exchange} and a.operation = any(${operations}) and (${days} is null or m.day = any(${days}))`,
  );
  const moves = moved(isDecided);
  const isNewer = sql`excluded.last_place > ${coverage}.last_place`;
  const asker = ['run_id', 'window_id'].map(
    (name) =>
      [
        name,
        sql`case when ${isNewer} then excluded.${sql.identifier(name)} else ${coverage}.${sql.identifier(name)} end`,
      ] as const,
  );
  const checkedAt = ['checked_at', sql`greatest(excluded.checked_at, ${coverage}.checked_at)`] as const;
  await runPrepared(
    db,
    sql`
    with own as (${own}), affected as (${affected}),
      said as (select * from own${decided === null ? sql`` : sql` union all ${others}`})
    insert into ${coverage} (operation, exchange, day, instrument, variant, last_place, last_said, last_records, last_diagnostic,
      loaded_place, loaded_records, doubted_place, emptied_place, held_back_place, run_id, window_id, checked_at)
    select s.operation, ${exchange}, s.day, s.instrument, s.variant, s.place, s.state, s.records, s.diagnostic,
           case when s.state = 'loaded' then s.place end, case when s.state = 'loaded' then s.records end,
           case when ${facts.doubted ?? false}::boolean and isfinite(s.place) then s.place end, m.emptied_place, m.held_back_place,
           coalesce(s.run_id, ${runId}::bigint), coalesce(s.window_id, ${windowId}::bigint),
           case when isfinite(s.place) then statement_timestamp() else s.place end
      from said s left join affected m on m.operation = s.operation and m.day = s.day and m.variant = s.variant and s.instrument = ''
     order by s.operation, s.day, s.instrument, s.variant
        on conflict on constraint coverage_pkey do update set ${sql.join(
          [...moves, ...asker, checkedAt].map(([name, value]) => sql`${sql.identifier(name)} = ${value}`),
          sql`, `,
        )}
     where ${isNewer} or (${sql.join(
       moves.map(([, value]) => value),
       sql`, `,
     )}) is distinct from (${sql.join(
       moves.map(([name]) => sql`${coverage}.${sql.identifier(name)}`),
       sql`, `,
     )})`,
  );
}

/** The entries of these days that were written by this window. */
export async function coverageOfWindow(
  db: Preparing,
  asked: Pair & DayRange & { readonly windowId: number },
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
interface AskedDays extends Pair {
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
  readonly ofExchange: CoverageState | null;
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
      ofExchange: sql<CoverageState | null>`max(${stateColumn}) filter (where ${instrumentColumn} = '')`,
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

/** The run that last requested the newest day of each operation and exchange, and when. */
export async function lastRequests(db: NodePgDatabase) {
  const found = await db.execute<Pair & Record<string, unknown> & { runId: number; askedAt: string }>(sql`
    select p.operation, p.exchange, r.run_id::int as "runId", r.checked_at as "askedAt"
      from etl.requested_pairs() p cross join lateral (
        select max(c.run_id) as run_id, max(c.checked_at) as checked_at from ${coverage} c
         where c.operation = p.operation and c.exchange = p.exchange and c.day = (
           select max(n.day) from ${coverage} n where n.operation = p.operation and n.exchange = p.exchange)) r`);
  return found.rows;
}

/**
 * A select of the sessions that were loaded for the whole exchange: exchange, day, records, when it was stored, the window,
 * and the place of the answer. For the SQL of checks, which is built as text.
 */
export function loadedSessionsSql(operation: string): string {
  return `select exchange, day, records, checked_at, window_id, loaded_place from ${COVERAGE}
     where operation = '${operation}' and instrument = '' and variant = '' and state = 'loaded'`;
}
