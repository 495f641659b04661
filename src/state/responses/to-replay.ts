import {
  and,
  type Column,
  desc,
  eq,
  gte,
  inArray,
  isNotNull,
  isNull,
  lte,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { DayRange } from '../../core/days.ts';
import { dataSetsAlsoFilling } from '../../declaration/operation.ts';
import { dataSets } from '../../operations/registry.ts';
import { rejects } from '../schema/load-results.ts';
import { responseBodies, responses } from '../schema/source-tables.ts';

/** The table's name, for SQL that is built as text. */
export const RESPONSES = 'etl.responses';

/** Which kept responses; nothing given means all. */
export interface ResponseFilter {
  /** Operations and data sets of files; files and responses of others that fill the same tables are included. */
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Responses that were about at least one day from here … */
  readonly from?: string | undefined;
  /** … to here. */
  readonly to?: string | undefined;
}

/** The condition of a filter, on responses or on the windows that requested them. */
function matchesFilter(
  table: Record<'operation' | 'exchange' | 'from_date' | 'to_date' | 'params', Column>,
  { operations, exchanges, from, to }: ResponseFilter,
): SQL | undefined {
  return and(
    operations === undefined ? undefined : isInOperations(table, operations),
    exchanges === undefined ? undefined : inArray(table.exchange, [...exchanges]),
    from === undefined ? undefined : gte(table.to_date, from),
    to === undefined ? undefined : lte(table.from_date, to),
  );
}

/** True if it is of one of these data sets, or an imported file of another one that fills their tables. */
function isInOperations(
  table: Record<'operation' | 'params', Column>,
  names: readonly string[],
): SQL | undefined {
  const inFiles = dataSetsAlsoFilling(dataSets, names);
  return or(
    inArray(table.operation, [...names]),
    inFiles.length === 0 ? undefined : and(inArray(table.operation, inFiles), sql`${table.params} ? 'file'`),
  );
}

/** Ids of the newest kept responses of an operation, without imported files. */
export async function listNewestResponses(
  db: NodePgDatabase,
  operation: string,
  limit: number,
): Promise<number[]> {
  const rows = await db
    .select({ id: responses.id })
    .from(responses)
    .where(
      and(
        isNotNull(responses.hash),
        eq(responses.operation, operation),
        sql`not ${responses.params} ? 'file'`,
      ),
    )
    .orderBy(desc(responses.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** Operations and exchanges of which anything is kept. */
export function listPairsWithResponses(db: NodePgDatabase) {
  const { operation, exchange } = responses;
  return db
    .selectDistinct({ operation, exchange })
    .from(responses)
    .where(isNotNull(responses.hash))
    .orderBy(operation, exchange);
}

/** What kept responses are about, and how much is to be read of them. */
export interface ResponseToReplay extends DayRange {
  readonly instruments: readonly string[];
  /** Length of their bodies, uncompressed. */
  readonly bytes: number;
}

/**
 * What the kept responses that match are about, by their first day.
 *
 * @param rejectsOnly only responses with open rejects.
 */
export async function listResponsesToReplay(
  db: NodePgDatabase,
  filter: ResponseFilter,
  rejectsOnly: boolean,
): Promise<ResponseToReplay[]> {
  const a = alias(responses, 'a');
  const openRejects = db
    .select({ position: rejects.last_seen_at })
    .from(rejects)
    .where(and(isNull(rejects.resolved_at), isNull(rejects.accepted_at)));
  const { from_date: from, to_date: to } = a;
  return db
    .select({
      from,
      to,
      instruments: a.instruments,
      bytes: sql`sum(${responseBodies.bytes})`.mapWith(Number),
    })
    .from(a)
    .innerJoin(responseBodies, eq(responseBodies.hash, a.hash))
    .where(and(matchesFilter(a, filter), rejectsOnly ? inArray(a.position, openRejects) : undefined))
    .groupBy(from, to, a.instruments)
    .orderBy(from, to);
}
