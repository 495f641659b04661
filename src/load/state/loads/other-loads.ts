import { and, type Column, eq, gt, gte, isNull, lt, lte, ne, notExists, or, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias, QueryBuilder } from 'drizzle-orm/pg-core';
import type { DayRange } from '../../../core/days.ts';
import type { Place } from '../../../core/place.ts';
import { type Preparing, prepareOnce, runPrepared } from '../../database/prepared.ts';
import { loads } from '../schema/load-results.ts';
import { windows } from '../schema/work.ts';
import { isOf } from './loads.ts';
import type { LoadGroup } from './locks.ts';

// What the load of an answer needs to know about the loads of others, above all of answers fetched later: the answer
// that was fetched last counts, in whatever order they are loaded.

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

/** The load of an answer whose rows are stored now. */
interface LastLoad {
  readonly windowId: number;
  readonly fetched: number;
  readonly stale: number;
  readonly duplicate: number;
}

/**
 * The load whose rows are stored now: the last one that may be about the days of a window, if it was of the same answer
 * to the same question, fetched before, without rejects, warnings or doubts. Null if there is no such load.
 */
export async function lastCleanLoad(
  db: Preparing,
  asked: {
    readonly windowId: number;
    readonly operations: readonly string[];
    readonly digest: string;
    readonly place: Place;
  },
): Promise<LastLoad | null> {
  const found = await selectLastCleanLoad(db, asked);
  return found.rows[0] ?? null;
}

const selectLastCleanLoad = prepareOnce<
  { windowId: number; operations: readonly string[]; digest: string; place: Place },
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
  return db
    .select({
      windowId: number(last.window_id).as('windowId'),
      fetched: number(last.fetched).as('fetched'),
      stale: number(last.stale).as('stale'),
      duplicate: number(last.duplicate).as('duplicate'),
    })
    .from(asked)
    .innerJoin(last, concerns(last))
    .innerJoin(windows, eq(windows.id, last.window_id))
    .where(
      and(
        eq(asked.id, sql.placeholder('windowId')),
        eq(last.digest, sql.placeholder('digest')),
        lt(last.place, sql.placeholder('place')),
        eq(last.operation, asked.operation),
        eq(last.from_date, asked.from_date),
        eq(last.to_date, asked.to_date),
        eq(last.instruments, asked.instruments),
        eq(last.variant, asked.variant),
        eq(last.is_filtered, asked.is_filtered),
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
                or(gt(other.state, last.state), gte(other.place, last.place)),
              ),
            ),
        ),
      ),
    );
});

/**
 * Are there loads of later answers, or of this one? If not, an answer can be stored without regard to others. Asked while
 * the locks are held.
 *
 * @param scope.instruments only loads about one of these, or about all, matter; every load if there are none.
 */
export async function hasLaterOrOwnLoad(
  tx: Preparing,
  scope: LoadScope & { readonly instruments: readonly string[] },
  place: Place,
): Promise<boolean> {
  const asked = scope.instruments.map((one) => one.toUpperCase());
  const overlaps = sql`(${loads.instruments} = '{}' or upper(${loads.instruments}::text)::text[] && ${sql.param(asked)}::text[])`;
  const found = await runPrepared<{ later: boolean }>(
    tx,
    sql`select exists (select from ${loads} where ${and(isAbout(scope), gte(loads.place, place), asked.length === 0 ? undefined : overlaps)}) as later`,
  );
  return found.rows[0]?.later ?? true;
}

/** Is there a load of a later answer, or, with `orOwn`, of this one? */
export async function hasLaterLoad(
  tx: NodePgDatabase,
  scope: LoadScope,
  place: Place,
  { orOwn = false } = {},
): Promise<boolean> {
  const isLater = orOwn ? gte(loads.place, place) : gt(loads.place, place);
  const later = tx
    .select({ id: loads.id })
    .from(loads)
    .where(and(isAbout(scope), isLater));
  return (await later.limit(1)).length > 0;
}

/** Was an answer loaded before? */
export async function wasLoaded(tx: NodePgDatabase, place: Place): Promise<boolean> {
  return (await tx.select({ id: loads.id }).from(loads).where(eq(loads.place, place)).limit(1)).length > 0;
}
