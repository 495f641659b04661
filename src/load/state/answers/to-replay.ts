import {
  and,
  type Column,
  desc,
  eq,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lte,
  not,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import { dataSetsAlsoFilling } from '../../../operations/operation.ts';
import { dataSets, operations } from '../../../operations/registry.ts';
import { answers } from '../schema/source.ts';
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

/**
 * A query for the ids of the answers to replay: those that match, and every newer one about the same days, because
 * loading an older answer alone could bring back what a newer one has replaced.
 *
 * @param rejectsOnly only answers with open rejects.
 */
export function answersToReplay(filter: AnswerFilter, rejectsOnly: boolean): SQL {
  const all = !rejectsOnly && Object.values(filter).every((value) => value === undefined);
  // If all are chosen, no newer ones need to be looked for.
  if (all) return sql`select id from ${answers} where hash is not null`;
  const undated = operations.filter((one) => one.windows.per === 'once').map((one) => one.name);
  const hasRejects = sql`${answers.place} in (select last_seen_at from ${rejects} where resolved_at is null)`;
  return sql`
    with recursive chosen(id) as (
      select ${answers.id} from ${answers}
       where ${and(isNotNull(answers.hash), matchesFilter(answers, filter), rejectsOnly ? hasRejects : undefined)}
      union
      select newer.id from chosen c join ${answers} older on older.id = c.id
        join ${answers} newer on newer.operation = older.operation and newer.exchange = older.exchange
          and newer.variant = older.variant and newer.hash is not null
       where newer.place > older.place
         and (older.operation = any(${sql.param(undated)})
           or (newer.from_date <= older.to_date and newer.to_date >= older.from_date))
         and (newer.instruments = '{}' or older.instruments = '{}' or newer.instruments && older.instruments)
    ) select id from chosen`;
}

/**
 * Answers that were fetched later, for everything that an older one was asked for, and loaded without a reject; the
 * newest first.
 *
 * @param scope.anyDays whether the days that they were asked for do not matter.
 * @param scope.files whether imported files count too. Without them only the newest answer is returned.
 */
export async function newerFullAnswers(
  db: NodePgDatabase,
  answerId: number,
  scope: { readonly anyDays: boolean; readonly files: boolean },
) {
  const older = alias(answers, 'older');
  const newer = alias(answers, 'newer');
  const isFile = sql<boolean>`${newer.params}->>'file' is not null`;
  const found = db
    .select({ id: newer.id, isFile })
    .from(older)
    .innerJoin(
      newer,
      and(
        eq(newer.operation, older.operation),
        eq(newer.exchange, older.exchange),
        gt(newer.place, older.place),
        isNotNull(newer.hash),
        sql`${newer.instruments} = '{}'`,
        eq(newer.filtered, false),
        scope.anyDays
          ? undefined
          : and(lte(newer.from_date, older.from_date), gte(newer.to_date, older.to_date)),
      ),
    )
    .innerJoin(windows, eq(windows.id, newer.window_id))
    .where(
      and(
        eq(older.id, answerId),
        eq(windows.state, 'loaded'),
        eq(windows.rejected, 0),
        isNull(windows.suspicious),
        scope.files ? undefined : not(isFile),
      ),
    )
    .orderBy(desc(newer.place));
  return scope.files ? found : found.limit(1);
}

/** Assigns answers that were copied from another database to the windows of the first replay that reads them. */
export async function adoptAnswers(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx
    .update(answers)
    .set({ run_id: sql`${windows.run_id}`, window_id: sql`${windows.id}` })
    .from(windows)
    .where(and(eq(windows.run_id, runId), eq(windows.answer_id, answers.id), eq(answers.window_id, 0)));
}
