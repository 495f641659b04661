import {
  and,
  type Column,
  eq,
  getTableName,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  lte,
  ne,
  notExists,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias, QueryBuilder } from 'drizzle-orm/pg-core';
import type { DayRange } from '../../../core/days.ts';
import { type Preparing, prepareOnce, runPrepared } from '../../database/prepared.ts';
import { placeOf, questionOf } from '../schema/columns.ts';
import { responses } from '../schema/source.ts';
import { coverage, loads, rejects, windows } from '../schema/work.ts';
import { isOf, LOADS, type LoadGroup } from './loads.ts';

// What the load of an answer needs to know about the loads of others, above all of answers fetched later: the answer
// that was fetched last counts, in whatever order they are loaded.

/** Selects the loads that may be about the same rows. */
export interface LoadScope extends LoadGroup {
  /** Null where days do not matter. */
  readonly days: DayRange | null;
}

/** The answer of a window. */
export interface OwnAnswer {
  readonly windowId: number;
  readonly fetchedAt: Date;
  /** SHA-256 of its body; empty where there is none. */
  readonly hash: string;
}

/**
 * SQL that is text: is an answer of this row of loads later than that of a window?
 *
 * @param own placeholders.
 */
export const isLaterThanOwn = (row: string, own: Readonly<Record<keyof OwnAnswer, string>>) =>
  `(${placeOf(row)}) > (select ${own.fetchedAt}::timestamptz, ${questionOf('w')}, ${own.hash}::text from etl.${getTableName(windows)} w where w.id = ${own.windowId})`;

/** The same for a query of loads. */
const isLater = ({ windowId, fetchedAt, hash }: OwnAnswer): SQL => sql`(${sql.raw(placeOf(LOADS))}) > (
  select ${fetchedAt.toISOString()}::timestamptz, ${sql.raw(questionOf('w'))}, ${hash}::text from ${windows} w where w.id = ${windowId})`;

/**
 * The condition for committed loads of answers that were fetched at this moment or later and may be about these rows.
 * While the locks of their days are held, no more can come.
 */
function isSince(scope: LoadScope, fetchedAt: Date) {
  const { days } = scope;
  return and(
    gte(loads.fetched_at, fetchedAt.toISOString()),
    isOf(scope),
    days === null ? undefined : and(lte(loads.from_date, days.to), gte(loads.to_date, days.from)),
  );
}

/** The load of an answer whose rows are stored now. */
interface LastLoad {
  readonly windowId: number;
  readonly whole: string[];
  readonly fetched: number;
  readonly stale: number;
  readonly duplicate: number;
  /** Are there open rejects of the operation and exchange, of other answers? */
  readonly openRejects: boolean;
}

/**
 * The load whose rows are stored now: the last one that may be about the days of a window, if it was of the same answer
 * to the same question, fetched before, without rejects, warnings or suspicions. Null if there is no such load.
 */
export async function lastCleanLoad(
  db: Preparing,
  asked: {
    readonly windowId: number;
    readonly operations: readonly string[];
    readonly digest: string;
    readonly fetchedAt: Date;
  },
): Promise<LastLoad | null> {
  const found = await selectLastCleanLoad(db, { ...asked, fetchedAt: asked.fetchedAt.toISOString() });
  return found.rows[0] ?? null;
}

const selectLastCleanLoad = prepareOnce<
  { windowId: number; operations: readonly string[]; digest: string; fetchedAt: string },
  LastLoad & Record<string, unknown>
>(() => {
  const db = new QueryBuilder();
  const asked = alias(windows, 'asked');
  const last = alias(loads, 'last');
  const other = alias(loads, 'other');
  const concerns = (one: typeof last | typeof other) =>
    and(
      sql`${one.operation} = any(${sql.placeholder('operations')}::text[])`,
      eq(one.exchange, asked.exchange),
      lte(one.from_date, asked.to_date),
      gte(one.to_date, asked.from_date),
    );
  const number = (column: Column) => sql<number>`${column}::float8`;
  const openRejects = and(
    eq(rejects.operation, asked.operation),
    eq(rejects.exchange, asked.exchange),
    isNull(rejects.resolved_at),
  );
  return db
    .select({
      windowId: number(last.window_id).as('windowId'),
      whole: last.whole,
      fetched: number(last.fetched).as('fetched'),
      stale: number(last.stale).as('stale'),
      duplicate: number(last.duplicate).as('duplicate'),
      openRejects: sql`exists (select from ${rejects} where ${openRejects})`.as('openRejects'),
    })
    .from(asked)
    .innerJoin(last, concerns(last))
    .innerJoin(windows, eq(windows.id, last.window_id))
    .where(
      and(
        eq(asked.id, sql.placeholder('windowId')),
        eq(last.digest, sql.placeholder('digest')),
        lt(last.fetched_at, sql.placeholder('fetchedAt')),
        eq(last.operation, asked.operation),
        eq(last.from_date, asked.from_date),
        eq(last.to_date, asked.to_date),
        eq(last.instruments, asked.instruments),
        eq(last.variant, asked.variant),
        eq(last.filtered, asked.filtered),
        eq(windows.params, asked.params),
        eq(last.rejected, 0),
        eq(windows.state, 'loaded'),
        eq(windows.warnings, []),
        isNull(windows.suspicious),
        notExists(
          db
            .select({ id: other.id })
            .from(other)
            .where(
              and(
                concerns(other),
                ne(other.id, last.id),
                or(gt(other.state, last.state), gte(other.fetched_at, last.fetched_at)),
              ),
            ),
        ),
      ),
    );
});

/** What an answer was asked for. */
export interface AskedAnswer {
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly filtered: boolean;
  /** Were there records that were not asked for? Then its days count as failed, whatever was loaded before. */
  readonly hasStrays: boolean;
}

/**
 * What later answers than that of a window were asked for, if they were loaded. `isCertain`: it had records, or its days
 * are covered as empty; without records it may else have come too early.
 */
export async function laterLoads(tx: NodePgDatabase, scope: LoadScope, own: OwnAnswer) {
  const { from_date, to_date, instruments, variant, filtered, whole } = loads;
  const isEmpty = sql`(select bool_and(${coverage.state} = 'empty') from ${coverage}
    where ${coverage.operation} = ${loads.operation} and ${coverage.exchange} = ${loads.exchange}
      and ${coverage.day} between ${from_date} and ${to_date} and ${coverage.window_id} = ${loads.window_id})`;
  const isCertain = sql<boolean>`(${loads.fetched} > 0 or coalesce(${isEmpty}, false))`;
  // A full answer may be doubted for other reasons, but one with rejects lists nothing in full.
  const hasStrays = sql<boolean>`(${loads.rejected} > 0 and exists (
    select from ${windows} w where w.id = ${loads.window_id} and w.suspicious is not null))`;
  return tx
    .select({ from: from_date, to: to_date, instruments, variant, filtered, whole, isCertain, hasStrays })
    .from(loads)
    .where(and(isSince(scope, own.fetchedAt), isLater(own)));
}

/** What was loaded or rejected before that may affect how an answer is stored. */
export interface Known {
  /** Are there loads of answers that were fetched at the same time or later? */
  readonly later: boolean;
  /** Are there open rejects? */
  readonly rejects: boolean;
}

/**
 * Finds out with one query, while the locks are held, whether an answer can be stored without regard to other answers.
 *
 * @param scope.instruments only loads about one of these, or about all, matter; every load if there are none.
 */
export async function readKnown(
  tx: Preparing,
  scope: LoadScope & { readonly instruments: readonly string[] },
  fetchedAt: Date,
): Promise<Known> {
  const asked = scope.instruments.map((one) => one.toUpperCase());
  const overlaps = sql`(${loads.instruments} = '{}' or upper(${loads.instruments}::text)::text[] && ${sql.param(asked)}::text[])`;
  const found = await runPrepared<Known & Record<string, unknown>>(
    tx,
    sql`
    select exists (select from ${loads} where ${and(isSince(scope, fetchedAt), asked.length === 0 ? undefined : overlaps)}) as later,
           exists (select from ${rejects} where ${and(
             inArray(rejects.operation, [...scope.operations]),
             eq(rejects.exchange, scope.exchange),
             isNull(rejects.resolved_at),
           )}) as rejects`,
  );
  return found.rows[0] ?? { later: true, rejects: true };
}

/**
 * The condition that a window's answer, which was fetched in the same millisecond as this one, is later. One that was
 * rejected as a whole has no load, but its question says so too.
 *
 * @param row of windows.
 */
export const isLaterOfMoment = (row: string, own: OwnAnswer) => sql`(
  (${sql.raw(questionOf(row))}) > (select ${sql.raw(questionOf('own'))} from ${windows} own where own.id = ${own.windowId})
  or exists (select from ${loads} where ${loads.window_id} = ${sql.raw(`${row}.id`)} and ${isLater(own)}))`;

/** Is there a load of an answer later than that of a window? */
export async function hasLaterLoad(tx: NodePgDatabase, scope: LoadScope, own: OwnAnswer): Promise<boolean> {
  const later = tx
    .select({ id: loads.id })
    .from(loads)
    .where(and(isSince(scope, own.fetchedAt), isLater(own)));
  return (await later.limit(1)).length > 0;
}

/** Are there as many loads of answers that were fetched at this moment or later? */
export async function hasLoadsSince(
  tx: NodePgDatabase,
  scope: LoadScope,
  fetchedAt: Date,
  atLeast = 1,
): Promise<boolean> {
  const since = tx.select({ id: loads.id }).from(loads).where(isSince(scope, fetchedAt));
  return (await since.limit(atLeast)).length === atLeast;
}

/** A kept answer, and the load that first stored it. The ids are null for the answer that is being loaded. */
interface AnswerToFold {
  readonly responseId: number | null;
  readonly fetchedAt: string;
  readonly loadId: number | null;
  readonly runId: number | null;
}

/**
 * The kept answers that were loaded and may be about the rows of a scope, in the order in which they were fetched. The
 * answer of the window itself is among them, with `responseId` null, whether it was loaded before or is being loaded
 * now.
 *
 * @returns null if one that was loaded is not kept.
 */
export async function answersToFold(
  tx: NodePgDatabase,
  {
    operations,
    exchange,
    days,
    sameInstruments,
    sameDays,
  }: LoadScope & {
    /** Only answers about an instrument of the window. */
    readonly sameInstruments: boolean;
    /** Only answers about the window's days, or fetched within two days of it. */
    readonly sameDays: boolean;
  },
  /** `fetchedAt` is null if no answer is being loaded. */
  { windowId, fetchedAt, hash }: Omit<OwnAnswer, 'fetchedAt'> & { readonly fetchedAt: Date | null },
): Promise<AnswerToFold[] | null> {
  const moment = sql`${fetchedAt?.toISOString() ?? null}::timestamptz`;
  const concerns = (one: string) => {
    const of = (column: string) => sql.raw(`${one}.${column}`);
    return and(
      sql`${of('exchange')} = ${exchange} and ${of('operation')} = any(${sql.param(operations)}::text[])`,
      days === null ? undefined : sql`${of('from_date')} <= ${days.to} and ${of('to_date')} >= ${days.from}`,
      sameInstruments
        ? sql`(${of('instruments')} = '{}' or own.instruments = '{}'
            or upper(${of('instruments')}::text)::text[] && upper(own.instruments::text)::text[])`
        : undefined,
      sameDays
        ? sql`(${of('from_date')} <= own.to_date and ${of('to_date')} >= own.from_date
            or ${of('fetched_at')} between ${moment} - interval '2 days' and ${moment} + interval '2 days')`
        : undefined,
    );
  };
  const isOwn = (one: string) =>
    sql`(${sql.raw(placeOf(one))}) is not distinct from (${moment}, ${sql.raw(questionOf('own'))}, ${hash}::text)`;
  // A person accepted a withdrawal of the answer itself: that is a load without a body, of one of its days.
  const isAboutOwn = sql.raw(
    `(l.hash = '' and l.operation = own.operation and l.from_date >= own.from_date and l.to_date <= own.to_date and l.instruments = own.instruments)`,
  );
  const found = await tx.execute<
    { [Name in keyof AnswerToFold]: AnswerToFold[Name] } & { readonly kept: boolean }
  >(sql`
    with own as materialized (select * from ${windows} where id = ${windowId}),
    loaded as materialized (
      select l.* from ${loads} l, own where ${concerns('l')} and l.window_id <> 0 and not ${isOwn('l')}
    ), kept as materialized (
      select r.* from ${responses} r, own where ${concerns('r')} and not ${isOwn('r')}
    )
    select r.id::int as "responseId", to_json(r.fetched_at)#>>'{}' as "fetchedAt", true as kept, l.id::int as "loadId", l.run_id::int as "runId", ${sql.raw(placeOf('r'))}
      from kept r join lateral (
        select l.id, l.run_id from loaded l where (${sql.raw(placeOf('l'))}) = (${sql.raw(placeOf('r'))}) order by l.id limit 1) l on true
    union all
    select null, to_json(${moment})#>>'{}', true, null, null, ${moment}, ${sql.raw(questionOf('own'))}, ${hash}::text from own where ${moment} is not null
    union all
    select null, to_json(l.fetched_at)#>>'{}', false, null, null, ${sql.raw(placeOf('l'))}
      from loaded l, own where not (${isAboutOwn} and l.fetched_at is not distinct from ${moment}) and not exists (
        select from kept r where r.fetched_at = l.fetched_at and r.operation = l.operation and l.hash in (r.hash, '')
           and r.from_date <= l.from_date and r.to_date >= l.to_date and r.instruments = l.instruments)
    order by 6, 7, 8, 9, 10, 11, 12, 13, 14, 1`);
  if (found.rows.some(({ kept }) => !kept)) return null;
  return found.rows;
}

/**
 * Was a window's answer loaded before? The moment alone does not identify it, because workers fetch several answers in
 * the same millisecond. An answer without a body is part of one that was fetched then.
 */
export async function wasLoaded(
  tx: NodePgDatabase,
  { windowId, fetchedAt, hash }: OwnAnswer,
): Promise<boolean> {
  const { operation, exchange, from_date, to_date, instruments, variant } = windows;
  const found = await tx
    .select({ id: loads.id })
    .from(windows)
    .innerJoin(
      loads,
      and(
        eq(loads.operation, operation),
        eq(loads.exchange, exchange),
        eq(loads.from_date, from_date),
        eq(loads.to_date, to_date),
        eq(loads.instruments, instruments),
        eq(loads.variant, variant),
        eq(loads.fetched_at, fetchedAt.toISOString()),
        hash === '' ? undefined : eq(loads.hash, hash),
      ),
    )
    .where(eq(windows.id, windowId))
    .limit(1);
  return found.length > 0;
}
