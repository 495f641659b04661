import { and, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../../core/days.ts';
import type { Place } from '../../../core/place.ts';
import type { LoadGroup } from '../loads/locks.ts';
import type { LoadScope } from '../loads/other-loads.ts';
import { placeText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { answers } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import { NO_DAY } from '../withdrawals.ts';
import { FIRST_DAY, LAST_DAY } from './to-replay.ts';

// Which answers a fold applies again, in their order.

/** A kept answer, and the load that first stored it. The ids are null for the answer that is being loaded. */
export interface AnswerToFold {
  readonly answerId: number | null;
  readonly place: Place;
  /** The time of its call, in ISO 8601. */
  readonly fetchedAt: string;
  readonly loadId: number | null;
  readonly runId: number | null;
}

/** Selects the answers that have rows in common with that of a window. */
export interface FoldScope extends LoadScope {
  /** Only answers about an instrument of the window. */
  readonly sameInstruments: boolean;
  /** Only answers about the window's days, or fetched within two days of it. */
  readonly sameDays: boolean;
}

/** The condition that `a`, an answer or a load, is of a scope. `own` is the window. */
function concerns(
  { operations, exchange, days, sameInstruments, sameDays }: FoldScope,
  fetchedAt: Date,
): SQL | undefined {
  const call = sql`${fetchedAt.toISOString()}::timestamptz`;
  return and(
    sql`a.exchange = ${exchange} and a.operation = any(${sql.param(operations)}::text[])`,
    days === null ? undefined : sql`a.from_date <= ${days.to} and a.to_date >= ${days.from}`,
    sameInstruments
      ? sql`(a.instruments = '{}' or own.instruments = '{}' or upper(a.instruments::text)::text[] && upper(own.instruments::text)::text[])`
      : undefined,
    sameDays
      ? sql`(a.from_date <= own.to_date and a.to_date >= own.from_date
          or a.fetched_at between ${call} - interval '2 days' and ${call} + interval '2 days')`
      : undefined,
  );
}

const ownWindow = (windowId: number) =>
  sql`own as materialized (select * from ${windows} where id = ${windowId})`;

/**
 * The kept answers that were loaded and may be about the rows of a scope, in their order. The answer of the window itself
 * is among them, with `answerId` null, whether it was loaded before or is being loaded now.
 *
 * @param after without the answers that were loaded first in this version or an earlier one, unless they are kept.
 * @returns null if one that was loaded is not kept.
 */
export async function answersToFold(
  tx: NodePgDatabase,
  scope: FoldScope,
  /** `place` is null if no answer is being loaded. */
  { windowId, place, fetchedAt }: { windowId: number; place: Place | null; fetchedAt: Date },
  after: number,
): Promise<AnswerToFold[] | null> {
  const own = sql`${place}::timestamptz`;
  const found = await tx.execute<
    { [Name in keyof AnswerToFold]: AnswerToFold[Name] } & { readonly kept: boolean }
  >(sql`
    with ${ownWindow(windowId)}
    select a.id::int as "answerId", ${placeText(sql`a.place`)} as place, to_json(a.fetched_at)#>>'{}' as "fetchedAt",
           a.hash is not null as kept, l.id::int as "loadId", l.run_id::int as "runId"
      from ${answers} a, own, lateral (select id, run_id, state from ${loads} l where l.place = a.place order by l.id limit 1) l
     -- What is left of an answer that is not kept, such as its rejects, is not all of it.
     where ${concerns(scope, fetchedAt)} and (a.place is distinct from ${own} or a.hash is null)
       and (l.state > ${after} or a.hash is not null)
    union all
    select null, ${placeText(own)}, to_json(${fetchedAt.toISOString()}::timestamptz)#>>'{}', true, null, null where ${own} is not null
    order by place`);
  if (found.rows.some(({ kept }) => !kept)) return null;
  return found.rows;
}

/** An answer about days or instruments that are folded anew. */
export interface AnswerOfPart extends DayRange {
  readonly answerId: number;
  readonly windowId: number;
  readonly runId: number;
  readonly operation: string;
  readonly place: Place;
  /** The time of its call, in ISO 8601. */
  readonly fetchedAt: string;
  /** First and last day that its rows may be of: the answers of a trial address have a day of their own. */
  readonly firstDay: string;
  readonly lastDay: string;
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly filtered: boolean;
  readonly kept: boolean;
  /** Were the fields of its records noted? */
  readonly isObserved: boolean;
  /** The load that first stored it, and the version that this made; null if it was not loaded yet, or nothing of it was stored. */
  readonly load: { readonly id: number; readonly runId: number; readonly version: number } | null;
}

/** The answers about some days and instruments (null: all), kept or loaded, in their order. */
export async function answersOfPart(
  db: NodePgDatabase,
  part: LoadGroup & {
    readonly days: DayRange | null;
    /** In upper case. */
    readonly instruments: readonly string[] | null;
  },
): Promise<AnswerOfPart[]> {
  const { operations, exchange, days, instruments } = part;
  const found = await db.execute<{ [Name in keyof AnswerOfPart]: AnswerOfPart[Name] }>(sql`
    select a.id::float8 as "answerId", a.window_id::float8 as "windowId", a.run_id::float8 as "runId", a.operation,
           ${placeText(sql`a.place`)} as place, to_json(a.fetched_at)#>>'{}' as "fetchedAt", a.from_date::text as "from", a.to_date::text as "to", ${FIRST_DAY}::text as "firstDay", ${LAST_DAY}::text as "lastDay",
           a.instruments, a.variant, a.is_filtered as "filtered", a.hash is not null as kept,
           a.layout is not null as "isObserved", l.load
      from ${answers} a left join lateral (
        select json_build_object('id', id, 'runId', run_id, 'version', state) as load from ${loads} l where l.place = a.place order by l.id limit 1) l on true
     where a.exchange = ${exchange} and a.operation = any(${sql.param(operations)}::text[]) and (a.hash is not null or l.load is not null)
       ${days === null ? sql`` : sql`and ${FIRST_DAY} <= ${days.to} and ${LAST_DAY} >= ${days.from}`}
       ${instruments === null ? sql`` : sql`and upper(a.instruments::text)::text[] && ${sql.param(instruments)}::text[]`}
     order by a.place`);
  return found.rows;
}

/**
 * The place of the last answer about each day of a scope that was loaded in this version or an earlier one. NO_DAY stands
 * for rows without days.
 */
export async function lastPlaces(
  tx: NodePgDatabase,
  scope: FoldScope,
  days: readonly string[] | null,
  { windowId, fetchedAt }: { readonly windowId: number; readonly fetchedAt: Date },
  version: number,
): Promise<ReadonlyMap<string, Place>> {
  const isAboutDay = days === null ? sql`true` : sql`d.day between a.from_date and a.to_date`;
  const found = await tx.execute<{ day: string; place: Place }>(sql`
    with ${ownWindow(windowId)}
    select d.day::text as day, ${placeText(sql`max(a.place)`)} as place
      from unnest(${sql.param(days ?? [NO_DAY])}::date[]) d(day), ${loads} a, own
     where ${concerns(scope, fetchedAt)} and ${isAboutDay} and a.state <= ${version} group by 1`);
  return new Map(found.rows.map((one) => [one.day, one.place]));
}
