import { and, type Column, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../../core/days.ts';
import { PipelineError } from '../../../core/errors.ts';
import { BEFORE_ALL, type Place } from '../../../core/place.ts';
import type { LoadGroup } from '../loads/locks.ts';
import type { LoadScope } from '../loads/other-loads.ts';
import { placeText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { answers, pruned } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import { NO_DAY } from '../withdrawals.ts';
import { ofGroup } from './pruned.ts';
import { FIRST_DAY, LAST_DAY } from './to-replay.ts';

// Which answers a fold applies again, in their order.

/** A kept answer that is folded. */
export interface AnswerToFold {
  /** Null for the answer that is being loaded. */
  readonly answerId: number | null;
  readonly place: Place;
  /** The time of its call, in ISO 8601. */
  readonly fetchedAt: string;
  /** The load that first stored it; null if it was not loaded yet, or nothing of it was stored. */
  readonly load: { readonly id: number; readonly runId: number } | null;
}

/** Selects the answers that have rows in common with that of a window. */
export interface FoldScope extends LoadScope {
  /** Only answers about an instrument of the window. */
  readonly sameInstruments: boolean;
  /** Only answers about the window's days, or fetched within two days of it. */
  readonly sameDays: boolean;
}

/** The condition that `a`, an answer or a load, is of a scope of a window. */
function concerns(
  { operations, exchange, days, sameInstruments, sameDays }: FoldScope,
  { windowId, fetchedAt }: { readonly windowId: number; readonly fetchedAt: Date },
): SQL | undefined {
  const call = sql`${fetchedAt.toISOString()}::timestamptz`;
  const own = (column: Column) => sql`(select ${column} from ${windows} where ${windows.id} = ${windowId})`;
  const instruments = own(windows.instruments);
  return and(
    sql`a.exchange = ${exchange} and a.operation = any(${sql.param(operations)}::text[])`,
    days === null ? undefined : sql`a.from_date <= ${days.to} and a.to_date >= ${days.from}`,
    sameInstruments
      ? sql`(a.instruments = '{}' or ${instruments} = '{}' or upper(a.instruments::text)::text[] && upper(${instruments}::text)::text[])`
      : undefined,
    sameDays
      ? sql`(a.from_date <= ${own(windows.to_date)} and a.to_date >= ${own(windows.from_date)}
          or a.fetched_at between ${call} - interval '2 days' and ${call} + interval '2 days')`
      : undefined,
  );
}

/** What is known of a kept answer besides its body. */
export interface AnswerOfPart extends AnswerToFold, DayRange {
  readonly answerId: number;
  readonly windowId: number;
  readonly runId: number;
  readonly operation: string;
  /** First and last day that its rows may be of: the answers of a trial address have a day of their own. */
  readonly firstDay: string;
  readonly lastDay: string;
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly filtered: boolean;
  /** Were the fields of its records noted? */
  readonly isObserved: boolean;
}

/** The kept answers `a` that meet a condition, in their order. */
async function selectAnswers(db: NodePgDatabase, condition: SQL | undefined): Promise<AnswerOfPart[]> {
  const found = await db.execute<{ [Name in keyof AnswerOfPart]: AnswerOfPart[Name] }>(sql`
    select a.id::float8 as "answerId", a.window_id::float8 as "windowId", a.run_id::float8 as "runId", a.operation,
           ${placeText(sql`a.place`)} as place, to_json(a.fetched_at)#>>'{}' as "fetchedAt", a.from_date::text as "from", a.to_date::text as "to", ${FIRST_DAY}::text as "firstDay", ${LAST_DAY}::text as "lastDay",
           a.instruments, a.variant, a.is_filtered as "filtered", a.layout is not null as "isObserved", case when l.id is not null then json_build_object('id', l.id, 'runId', l.run_id) end as load
      from ${answers} a left join lateral (
        select id, run_id from ${loads} l where l.place = a.place order by l.id limit 1) l on true
     where ${and(condition, sql`a.hash is not null`)}
     order by a.place`);
  return found.rows;
}

/**
 * Checks that of the loads `a` that meet a condition, every answer is kept that had rows.
 *
 * @throws PipelineError `database` if one is neither kept nor pruned: it is not known which rows the others leave then.
 */
async function checkNoneLost(
  db: NodePgDatabase,
  { operations, exchange }: LoadGroup,
  condition: SQL | undefined,
): Promise<void> {
  // One statement, so that it sees how far answers are pruned as of when it looks which are kept.
  const found = await db.execute<{ id: number }>(sql`
    select a.id::float8 as id from ${loads} a
     where ${condition} and a.inserted + a.updated + a.unchanged + a.withdrawn > 0
       -- Without those of rebuilds, which no answer made.
       and a.place > ${BEFORE_ALL}::timestamptz
       and not exists (select from ${answers} k where k.place = a.place and k.hash is not null)
       and not exists (select from ${pruned} where ${ofGroup({ operations, exchange })} and (a.state <= ${pruned.state} or a.place <= ${pruned.place}))
     limit 1`);
  const [lost] = found.rows;
  if (lost === undefined) return;
  const message = `the answer of load ${lost.id} is neither kept nor pruned: without it, it is not known which rows of ${operations.join(', ')} ${exchange} follow, so nothing was changed`;
  throw new PipelineError(message, { kind: 'database' });
}

/**
 * The kept answers that were loaded and may be about the rows of a scope, in their order. The answer of the window itself
 * is among them, with `answerId` null, whether it was loaded before or is being loaded now.
 *
 * @throws PipelineError `database` as `checkNoneLost` does.
 */
export async function answersToFold(
  tx: NodePgDatabase,
  scope: FoldScope,
  /** `place` is null if no answer is being loaded. */
  { windowId, place, fetchedAt }: { windowId: number; place: Place | null; fetchedAt: Date },
): Promise<AnswerToFold[]> {
  const others = and(
    concerns(scope, { windowId, fetchedAt }),
    sql`a.place is distinct from ${place}::timestamptz`,
  );
  await checkNoneLost(tx, scope, others);
  const found: AnswerToFold[] = await selectAnswers(tx, and(others, sql`l.id is not null`));
  if (place === null) return found;
  const own = { answerId: null, place, fetchedAt: fetchedAt.toISOString(), load: null };
  return [...found, own].sort((one, other) => (one.place < other.place ? -1 : 1));
}

/** Some days and instruments (in upper case) of data sets; null: all. */
interface PartScope extends LoadGroup {
  readonly days: DayRange | null;
  readonly instruments: readonly string[] | null;
}

/** The condition that `a`, an answer or a load, is about a part. `first` and `last` are the days that it is about. */
const isOfPart = ({ operations, exchange, days, instruments }: PartScope, first: SQL, last: SQL) =>
  and(
    sql`a.exchange = ${exchange} and a.operation = any(${sql.param(operations)}::text[])`,
    days === null ? undefined : sql`${first} <= ${days.to} and ${last} >= ${days.from}`,
    instruments === null
      ? undefined
      : sql`upper(a.instruments::text)::text[] && ${sql.param(instruments)}::text[]`,
  );

/** The kept answers about a part, loaded or not, in their order. */
export const answersOfPart = (db: NodePgDatabase, part: PartScope): Promise<AnswerOfPart[]> =>
  selectAnswers(db, isOfPart(part, FIRST_DAY, LAST_DAY));

/** Checks that they are all of those that were loaded. @throws PipelineError `database` as `checkNoneLost` does. */
export const checkPartIsKept = (db: NodePgDatabase, part: PartScope): Promise<void> =>
  checkNoneLost(db, part, isOfPart(part, sql`a.from_date`, sql`a.to_date`));

/**
 * The place of the last answer about each day of a scope that was loaded in this version or an earlier one. NO_DAY stands
 * for rows without days.
 */
export async function lastPlaces(
  tx: NodePgDatabase,
  scope: FoldScope,
  days: readonly string[] | null,
  window: { readonly windowId: number; readonly fetchedAt: Date },
  version: number,
): Promise<ReadonlyMap<string, Place>> {
  const isAboutDay = days === null ? sql`true` : sql`d.day between a.from_date and a.to_date`;
  const found = await tx.execute<{ day: string; place: Place }>(sql`
    select d.day::text as day, ${placeText(sql`max(a.place)`)} as place
      from unnest(${sql.param(days ?? [NO_DAY])}::date[]) d(day), ${loads} a
     where ${concerns(scope, window)} and ${isAboutDay} and a.state <= ${version} group by 1`);
  return new Map(found.rows.map((one) => [one.day, one.place]));
}
