import { and, type Column, desc, eq, gte, inArray, isNotNull, lte, or, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { dataSetsAlsoFilling } from '../../../operations/operation.ts';
import { dataSets } from '../../../operations/registry.ts';
import { answers, responseBodies } from '../schema/source.ts';
import { rejects, windows } from '../schema/work.ts';

/** Which kept answers; nothing given means all. */
export interface AnswerFilter {
  /** Operations and data sets of files; files of other data sets that fill the same tables are included. */
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Answers that were asked about at least one day from here … */
  readonly from?: string | undefined;
  /** … to here. */
  readonly to?: string | undefined;
}

/** The condition of a filter, on answers or on the windows that asked for them. */
export function matchesFilter(
  table: Record<'operation' | 'exchange' | 'from_date' | 'to_date' | 'params', Column>,
  { operations, exchanges, from, to }: AnswerFilter,
): SQL | undefined {
  return and(
    operations === undefined ? undefined : isOf(table, operations),
    exchanges === undefined ? undefined : inArray(table.exchange, [...exchanges]),
    from === undefined ? undefined : gte(table.to_date, from),
    to === undefined ? undefined : lte(table.from_date, to),
  );
}

/** Is it of one of these data sets, or an imported file of another one that fills their tables? */
function isOf(table: Record<'operation' | 'params', Column>, names: readonly string[]): SQL | undefined {
  const alsoFilling = dataSetsAlsoFilling(dataSets, names);
  return or(
    inArray(table.operation, [...names]),
    alsoFilling.length === 0
      ? undefined
      : and(inArray(table.operation, alsoFilling), sql`${table.params} ? 'file'`),
  );
}

/** Ids of the newest kept answers of an operation (null: of any), without imported files. */
export async function newestAnswers(
  db: NodePgDatabase,
  operation: string | null,
  limit: number,
): Promise<number[]> {
  const found = await db
    .select({ id: answers.id })
    .from(answers)
    .where(
      and(
        isNotNull(answers.hash),
        operation === null ? undefined : eq(answers.operation, operation),
        sql`not ${answers.params} ? 'file'`,
      ),
    )
    .orderBy(desc(answers.id))
    .limit(limit);
  return found.map(({ id }) => id);
}

/** Operations and exchanges of which anything is kept. */
export function answeredPairs(db: NodePgDatabase) {
  const { operation, exchange } = answers;
  return db
    .selectDistinct({ operation, exchange })
    .from(answers)
    .where(isNotNull(answers.hash))
    .orderBy(operation, exchange);
}

/** What kept answers are about, and how much is to be read of them. */
export interface Kept {
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  /** Length of their bodies, uncompressed. */
  readonly bytes: number;
}

/**
 * What the kept answers that match are about, by their first day.
 *
 * @param rejectsOnly only answers with open rejects, whether of their own window or of a replay.
 */
export async function keptToReplay(
  db: NodePgDatabase,
  filter: AnswerFilter,
  rejectsOnly: boolean,
): Promise<Kept[]> {
  const { from_date, to_date, instruments, hash } = answers;
  const hasRejects = sql`exists (
    select from ${rejects} j join ${windows} w on w.id = j.window_id
     where j.resolved_at is null and (w.id = ${answers.window_id} or w.answer_id = ${answers.id}))`;
  return db
    .select({
      ...{ from: from_date, to: to_date, instruments },
      bytes: sql`sum(${responseBodies.bytes})`.mapWith(Number),
    })
    .from(answers)
    .innerJoin(responseBodies, eq(responseBodies.hash, hash))
    .where(and(matchesFilter(answers, filter), rejectsOnly ? hasRejects : undefined))
    .groupBy(from_date, to_date, instruments)
    .orderBy(from_date, to_date);
}
