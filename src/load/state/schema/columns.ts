import { type SQL, sql } from 'drizzle-orm';
import { bigint, bigserial, customType, pgSchema, timestamp } from 'drizzle-orm/pg-core';

/** What the pipeline knows about its own work. The queue is disposable; this is the truth. */
export const etl = pgSchema('etl');

/** Columns that come again and again. */
export const id = () => bigserial('id', { mode: 'number' }).primaryKey();
export const moment = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });
export const count = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0);
export const reference = (name: string) => bigint(name, { mode: 'number' });

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

/** ISO 8601 in UTC with all digits: a run may end within a millisecond of its last load. */
export const isoText = (moment: SQL) =>
  sql<string>`to_char(${moment} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
