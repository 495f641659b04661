import { type Column, getTableName, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import {
  bigint,
  bigserial,
  boolean,
  customType,
  date,
  type PgTable,
  pgSchema,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import { firstItem } from '../../core/iterables.ts';
import type { Position } from '../../core/position.ts';
import type { RecordCounts } from '../../core/record-counts.ts';

/** The schema of what the pipeline knows about its own work: the source of truth, where the queue is disposable. */
export const etl = pgSchema('etl');

// Columns that many tables have.
export const id = () => bigserial('id', { mode: 'number' }).primaryKey();
export const moment = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });
/** Where a response stands in the one order of responses, see `core/position.ts`. */
export const positionColumn = (name: string) =>
  timestamp(name, { withTimezone: true, precision: 6, mode: 'string' });
export const position = () => positionColumn('position');
export const day = (name: string) => date(name, { mode: 'string' });
export const count = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0);
export const reference = (name: string) => bigint(name, { mode: 'number' });

/** What the columns of `RecordCounts` count. */
export const COUNT_COMMENTS: Readonly<Record<keyof RecordCounts, string>> = {
  fetched: 'Records received: the sum of inserted, updated, unchanged, stale, duplicate and rejected.',
  inserted: 'Rows that were new.',
  updated: 'Rows whose values changed.',
  unchanged: 'Rows that were stored already with the same values.',
  stale: 'Records older (source_saved_at) than the stored row.',
  duplicate: 'Records whose key occurs again in the same response; the newest was kept.',
  rejected: 'Records that failed validation; see etl.rejects.',
  withdrawn: 'Rows that the source no longer lists.',
};

/** The window that a row is about, with the window's run, operation and exchange. */
export const ofWindow = () => ({
  run_id: reference('run_id').notNull(),
  window_id: reference('window_id').notNull(),
  operation: text('operation').notNull(),
  exchange: text('exchange').notNull(),
});

/** The rest of what a window requests: days, instruments, variant, and whether for only some of the records. */
export const requested = () => ({
  from_date: day('from_date').notNull(),
  to_date: day('to_date').notNull(),
  instruments: text('instruments').array().notNull(),
  variant: text('variant').notNull(),
  is_filtered: boolean('is_filtered').notNull(),
});

/** For constraints: the condition that the value is one of these. */
export const isOneOf = (column: Column, values: readonly string[]) =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`;

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

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
