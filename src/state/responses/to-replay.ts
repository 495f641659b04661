import { and, desc, eq, gte, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../core/days.ts';
import type { LoadGroup } from '../loads/locks.ts';
import { isAnyOf } from '../schema/columns.ts';
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
 * What the kept responses of some operations and an exchange are about, by their first day.
 *
 * @param days only responses that are about at least one day of these.
 * @param rejectsOnly only responses with open rejects.
 */
export async function listResponsesToReplay(
  db: NodePgDatabase,
  { operations, exchange }: LoadGroup,
  { from, to }: Pick<ResponseFilter, 'from' | 'to'>,
  rejectsOnly: boolean,
): Promise<ResponseToReplay[]> {
  const openRejects = db
    .select({ position: rejects.last_seen_at })
    .from(rejects)
    .where(and(isNull(rejects.resolved_at), isNull(rejects.accepted_at)));
  const { from_date, to_date, instruments } = responses;
  return db
    .select({
      from: from_date,
      to: to_date,
      instruments,
      bytes: sql`sum(${responseBodies.bytes})`.mapWith(Number),
    })
    .from(responses)
    .innerJoin(responseBodies, eq(responseBodies.hash, responses.hash))
    .where(
      and(
        isAnyOf(responses.operation, operations),
        eq(responses.exchange, exchange),
        from === undefined ? undefined : gte(to_date, from),
        to === undefined ? undefined : lte(from_date, to),
        rejectsOnly ? inArray(responses.position, openRejects) : undefined,
      ),
    )
    .groupBy(from_date, to_date, instruments)
    .orderBy(from_date, to_date);
}
