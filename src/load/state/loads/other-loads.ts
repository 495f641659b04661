import { and, type Column, eq, gt, gte, isNull, lt, lte, ne, notExists, or, sql } from 'drizzle-orm';
import { alias, QueryBuilder } from 'drizzle-orm/pg-core';
import type { Position } from '../../../core/position.ts';
import { type Preparing, prepareOnce } from '../../database/prepared.ts';
import { loads } from '../schema/load-results.ts';
import { windows } from '../schema/work.ts';

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
