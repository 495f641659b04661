import { and, type Column, eq, gt, gte, isNull, lt, lte, ne, notExists, or, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias, QueryBuilder } from 'drizzle-orm/pg-core';
import type { DayRange } from '../../../core/days.ts';
import type { Position } from '../../../core/position.ts';
import { type Preparing, prepareOnce, runPrepared } from '../../database/prepared.ts';
import { loads } from '../schema/load-results.ts';
import { windows } from '../schema/work.ts';
import { isOf } from './loads.ts';
import type { LoadGroup } from './locks.ts';

// What the load of a response needs to know about the loads of others, above all of responses fetched later: the
// response that was fetched last prevails, in whatever order they are loaded.

/** Selects the loads that may be about the same rows. */
export interface LoadScope extends LoadGroup {
  /** Null where days do not matter. */
  readonly days: DayRange | null;
}

/**
 * The condition for committed loads that may be about these rows. While the locks of their days are held, no more can
 * come.
 */
function isAbout(scope: LoadScope) {
  const { days } = scope;
  return and(
    isOf(scope),
    days === null ? undefined : and(lte(loads.from_date, days.to), gte(loads.to_date, days.from)),
  );
}

/** The load of a response whose rows are stored now. */
interface LastLoad {
  readonly windowId: number;
  readonly fetched: number;
  readonly stale: number;
  readonly duplicate: number;
}

/**
 * The load whose rows are stored now: the last one that may be about the days of a window, if it was of the same
 * response to the same requests, fetched before, without rejects, warnings or suspicions. Null if there is no such load.
 */
export async function lastCleanLoad(
  db: Preparing,
  requested: {
    readonly windowId: number;
    readonly operations: readonly string[];
    readonly digest: string;
    readonly position: Position;
  },
): Promise<LastLoad | null> {
  const found = await selectLastCleanLoad(db, requested);
  return found.rows[0] ?? null;
}

const selectLastCleanLoad = prepareOnce<
  { windowId: number; operations: readonly string[]; digest: string; position: Position },
  LastLoad & Record<string, unknown>
>(() => {
  const db = new QueryBuilder();
  const requested = alias(windows, 'requested');
  const last = alias(loads, 'last');
  const other = alias(loads, 'other');
  const concerns = (one: typeof last | typeof other) =>
    and(
      sql`${one.operation} = any(${sql.placeholder('operations')}::text[])`,
      eq(one.exchange, requested.exchange),
      lte(one.from_date, requested.to_date),
      gte(one.to_date, requested.from_date),
    );
  const number = (column: Column) => sql<number>`${column}::float8`;
  return db
    .select({
      windowId: number(last.window_id).as('windowId'),
      fetched: number(last.fetched).as('fetched'),
      stale: number(last.stale).as('stale'),
      duplicate: number(last.duplicate).as('duplicate'),
    })
    .from(requested)
    .innerJoin(last, concerns(last))
    .innerJoin(windows, eq(windows.id, last.window_id))
    .where(
      and(
        eq(requested.id, sql.placeholder('windowId')),
        eq(last.digest, sql.placeholder('digest')),
        lt(last.position, sql.placeholder('position')),
        eq(last.operation, requested.operation),
        eq(last.from_date, requested.from_date),
        eq(last.to_date, requested.to_date),
        eq(last.instruments, requested.instruments),
        eq(last.variant, requested.variant),
        eq(last.is_filtered, requested.is_filtered),
        eq(windows.params, requested.params),
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
                or(gt(other.state, last.state), gte(other.position, last.position)),
              ),
            ),
        ),
      ),
    );
});

/**
 * True if there are loads of later responses, or of this one. If not, a response can be stored without regard to
 * others. Checked while the locks are held.
 *
 * @param scope.instruments only loads about one of these, or about all, matter; every load if none are given.
 */
export async function hasLaterOrOwnLoad(
  tx: Preparing,
  scope: LoadScope & { readonly instruments?: readonly string[] },
  position: Position,
): Promise<boolean> {
  const requested = (scope.instruments ?? []).map((one) => one.toUpperCase());
  const overlaps = sql`(${loads.instruments} = '{}' or upper(${loads.instruments}::text)::text[] && ${sql.param(requested)}::text[])`;
  const found = await runPrepared<{ later: boolean }>(
    tx,
    sql`select exists (select from ${loads} where ${and(isAbout(scope), gte(loads.position, position), requested.length === 0 ? undefined : overlaps)}) as later`,
  );
  return found.rows[0]?.later ?? true;
}

/** True if a response was loaded before. */
export async function wasLoaded(tx: NodePgDatabase, position: Position): Promise<boolean> {
  return (
    (await tx.select({ id: loads.id }).from(loads).where(eq(loads.position, position)).limit(1)).length > 0
  );
}
