import { and, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { BEFORE_ALL, type Position } from '../../core/position.ts';
import { type Preparing, runPrepared } from '../../postgres/prepared.ts';
import type { LoadGroup } from '../loads/locks.ts';
import { positionText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';

// Which responses a fold applies, in their order.

/** A response that is folded. */
export interface ResponseToFold {
  readonly responseId: number;
  readonly position: Position;
  /** The time of its call, in ISO 8601. */
  readonly fetchedAt: string;
}

/** The load that first stored a response. */
interface FirstLoad {
  readonly loadId: number;
  readonly runId: number;
}

/** Selects the responses that may have rows in common. */
export interface FoldScope extends LoadGroup {
  /** Null where days do not matter. */
  readonly days: DayRange | null;
  /** Only responses about one of these, in upper case; null: about any. */
  readonly instruments: readonly string[] | null;
  /** Only responses about these days, or fetched within two days of a call. */
  readonly near?: (DayRange & { readonly fetchedAt: Date }) | null;
}

/** The condition that `a`, a response or a load, is of a scope. */
function isInScope({ operations, exchange, days, instruments, near = null }: FoldScope): SQL | undefined {
  const call = sql`${near?.fetchedAt.toISOString()}::timestamptz`;
  return and(
    sql`a.exchange = ${exchange} and a.operation = any(${sql.param(operations)}::text[])`,
    days === null ? undefined : sql`a.from_date <= ${days.to} and a.to_date >= ${days.from}`,
    instruments === null
      ? undefined
      : sql`upper(a.instruments::text)::text[] && ${sql.param(instruments)}::text[]`,
    near === null
      ? undefined
      : sql`(a.from_date <= ${near.to} and a.to_date >= ${near.from}
          or a.fetched_at between ${call} - interval '2 days' and ${call} + interval '2 days')`,
  );
}

/**
 * True if a later response of a scope was loaded, or the one of this position itself. While the locks of the days are
 * held, no more can come.
 */
export async function hasLaterOrOwnLoad(
  tx: Preparing,
  scope: FoldScope,
  position: Position,
): Promise<boolean> {
  const result = await runPrepared<{ later: boolean }>(
    tx,
    sql`select exists (select from ${loads} a
      where ${isInScope(scope)} and a.position >= ${position}::timestamptz) as later`,
  );
  return result.rows[0]?.later ?? true;
}

/** What is known of a kept response besides its body. */
export interface ResponseOfPart extends ResponseToFold, DayRange {
  /** Null if it was not loaded yet, or nothing of it was stored. */
  readonly load: FirstLoad | null;
  readonly windowId: number;
  readonly runId: number;
  readonly operation: string;
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly filtered: boolean;
}

/**
 * The kept responses about a scope, loaded or not, in their order.
 *
 * @param isLocked whether they are locked until the transaction ends: in the order of their numbers, as everywhere, so
 *   that two writers cannot deadlock.
 */
export async function readResponsesToFold(
  db: NodePgDatabase,
  scope: FoldScope,
  { isLocked = false } = {},
): Promise<ResponseOfPart[]> {
  const kept = sql`select * from ${responses} a where a.hash is not null and ${isInScope(scope)}`;
  const result = await db.execute<{ [Name in keyof ResponseOfPart]: ResponseOfPart[Name] }>(sql`
    select a.id::float8 as "responseId", a.window_id::float8 as "windowId", a.run_id::float8 as "runId", a.operation,
           ${positionText(sql`a.position`)} as position, to_json(a.fetched_at)#>>'{}' as "fetchedAt", a.from_date::text as "from", a.to_date::text as "to",
           a.instruments, a.variant, a.is_filtered as "filtered", case when l.id is not null then json_build_object('loadId', l.id, 'runId', l.run_id) end as load
      from (${kept}${isLocked ? sql` order by a.id for update` : sql``}) a left join lateral (
        select id, run_id from ${loads} l where l.position = a.position order by l.id limit 1) l on true
     order by a.position`);
  return result.rows;
}

/**
 * Those that were loaded: what rows follow from.
 *
 * @param butFor the position of a response that need not be kept yet.
 * @throws PipelineError as `checkNoneLost` does.
 */
export async function readLoadedResponses(
  db: NodePgDatabase,
  scope: FoldScope,
  butFor: Position | null = null,
) {
  await checkNoneLost(db, scope, butFor);
  return (await readResponsesToFold(db, scope)).flatMap(({ load, ...response }) =>
    load === null ? [] : [{ ...response, load }],
  );
}

/**
 * Checks that of the loads of a scope, every response is kept that had rows; but for that of one position.
 *
 * @throws PipelineError `database` if one is not kept: it is not known which rows the others leave then.
 */
export async function checkNoneLost(
  db: NodePgDatabase,
  scope: FoldScope,
  butFor: Position | null = null,
): Promise<void> {
  const { operations, exchange } = scope;
  const result = await db.execute<{ id: number }>(sql`
    select a.id::float8 as id from ${loads} a
     where ${isInScope(scope)} and a.position is distinct from ${butFor}::timestamptz and a.inserted + a.updated + a.unchanged + a.withdrawn > 0
       -- Without those of replays, which no response made.
       and a.position > ${BEFORE_ALL}::timestamptz
       and not exists (select from ${responses} k where k.position = a.position and k.hash is not null)
     limit 1`);
  const [lost] = result.rows;
  if (lost === undefined) return;
  const message = `the response of load ${lost.id} is not kept: without it, it is not known which rows of ${operations.join(', ')} ${exchange} follow, so nothing was changed`;
  throw new PipelineError(message, { kind: 'database' });
}
