import { type Column, getTableName, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type PgTable, pgSchema } from 'drizzle-orm/pg-core';
import { firstItem } from '../../core/iterables.ts';
import type { Position } from '../../core/position.ts';

/** The schema of what the pipeline knows about its own work: the source of truth, where the queue is disposable. */
export const etl = pgSchema('etl');

/** For constraints: the condition that the value is one of these. */
export const isOneOf = (column: Column, values: readonly string[]) =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`;

/** The condition that a column has one of these values. They are one parameter, however many. */
export const isAnyOf = (column: Column, values: readonly unknown[]): SQL =>
  sql`${column} = any(${sql.param([...values])})`;

/** ISO 8601 in UTC to the microsecond, because a run may end in the same millisecond as its last load. */
export const isoText = (moment: SQL) =>
  sql<string>`to_char(${moment} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** The moment so many days ago, by the clock of Postgres: that of this machine does not decide what is deleted. */
export const daysAgo = (days: number): SQL => sql`now() - make_interval(days => ${days}::int)`;

/** The position of a response as text, of a column or of SQL that selects one. */
export const positionText = (column: SQL | Column) =>
  sql<Position>`to_char((${column}) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Takes the next numbers of a table's ids, in ascending order, for rows that will be written later. */
export async function takeIds(db: NodePgDatabase, table: PgTable, count: number): Promise<number[]> {
  const { rows } = await db.execute<{ id: number }>(sql`
    select nextval(pg_get_serial_sequence(${`etl.${getTableName(table)}`}, 'id'))::float8 as id
      from generate_series(1, ${count}::int)`);
  return rows.map(({ id }) => id).sort((a, b) => a - b);
}

/** Takes the next number of a table's ids, for a row that will be written later. */
export async function takeId(db: NodePgDatabase, table: PgTable): Promise<number> {
  return firstItem(await takeIds(db, table, 1));
}
