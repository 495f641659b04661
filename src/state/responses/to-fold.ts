import { and, between, eq, gt, gte, isNotNull, lte, ne, notExists, or, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import { DAY_MS, type DayRange, isoTime } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { BEFORE_ALL, type Position } from '../../core/position.ts';
import { type Preparing, runPrepared } from '../../postgres/prepared.ts';
import type { LoadGroup } from '../loads/locks.ts';
import { isAnyOf, isoText, positionText } from '../schema/columns.ts';
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

const momentNear = (moment: Date, days: number): string => isoTime(moment.getTime() + days * DAY_MS);

/** The condition that a response or a load is of a scope. */
function isInScope(
  table: typeof responses | typeof loads,
  { operations, exchange, days, instruments, near = null }: FoldScope,
): SQL | undefined {
  const isAbout = ({ from, to }: DayRange) => and(lte(table.from_date, to), gte(table.to_date, from));
  return and(
    eq(table.exchange, exchange),
    isAnyOf(table.operation, operations),
    days === null ? undefined : isAbout(days),
    instruments === null
      ? undefined
      : sql`upper(${table.instruments}::text)::text[] && ${sql.param(instruments)}::text[]`,
    near === null
      ? undefined
      : or(
          isAbout(near),
          between(table.fetched_at, momentNear(near.fetchedAt, -2), momentNear(near.fetchedAt, 2)),
        ),
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
  const load = new QueryBuilder()
    .select({ id: loads.id })
    .from(loads)
    .where(and(isInScope(loads, scope), gte(loads.position, position)))
    .limit(1);
  return (await runPrepared(tx, load)).rowCount === 1;
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
  const isOfScope = and(isNotNull(responses.hash), isInScope(responses, scope));
  if (isLocked)
    await db
      .select({ id: responses.id })
      .from(responses)
      .where(isOfScope)
      .orderBy(responses.id)
      .for('update');
  const firstLoad = db
    .select({ loadId: loads.id, runId: loads.run_id })
    .from(loads)
    .where(eq(loads.position, responses.position))
    .orderBy(loads.id)
    .limit(1)
    .as('first_load');
  return db
    .select({
      responseId: responses.id,
      windowId: responses.window_id,
      runId: responses.run_id,
      operation: responses.operation,
      exchange: responses.exchange,
      position: positionText(responses.position),
      fetchedAt: isoText(sql`${responses.fetched_at}`),
      from: responses.from_date,
      to: responses.to_date,
      instruments: responses.instruments,
      variant: responses.variant,
      filtered: responses.is_filtered,
      load: { loadId: firstLoad.loadId, runId: firstLoad.runId },
    })
    .from(responses)
    .leftJoinLateral(firstLoad, sql`true`)
    .where(isOfScope)
    .orderBy(responses.position);
}

/**
 * The responses of a scope that were loaded: the rows follow from them.
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
  const isKept = db
    .select({ id: responses.id })
    .from(responses)
    .where(and(eq(responses.position, loads.position), isNotNull(responses.hash)));
  const [lost] = await db
    .select({ id: loads.id })
    .from(loads)
    .where(
      and(
        isInScope(loads, scope),
        butFor === null ? undefined : ne(loads.position, butFor),
        sql`${loads.inserted} + ${loads.updated} + ${loads.unchanged} + ${loads.withdrawn} > 0`,
        // Without those of replays, which no response made.
        gt(loads.position, BEFORE_ALL),
        notExists(isKept),
      ),
    )
    .limit(1);
  if (lost === undefined) return;
  const message = `the response of load ${lost.id} is not kept: without it, it is not known which rows of ${operations.join(', ')} ${exchange} follow, so nothing was changed`;
  throw new PipelineError(message, { kind: 'database' });
}
