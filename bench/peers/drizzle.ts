// A peer: batches through drizzle, as its documentation shows ("Upsert Query", several rows with `excluded`).
// A statement has at most 65,535 parameters, so that a batch of 33 columns must stay below 1,985 rows.
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, date, numeric, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import { Pool } from 'pg';
import type { Field } from '../../src/declaration/fields.ts';
import { CONNECTIONS, forEachBatch } from './batches.ts';
import { fields, KEY } from './rows.ts';

const BATCH = 1_000;
const [url, folder] = process.argv.slice(2) as [string, string];

function columnFor({ column, kind }: Field) {
  switch (kind) {
    case 'text':
      return text(column);
    case 'int8':
      return bigint(column, { mode: 'number' });
    case 'numeric':
      return numeric(column, { mode: 'number' });
    case 'date':
      return date(column);
    case 'datetime':
      return timestamp(column, { withTimezone: true, mode: 'string' });
    default:
      throw new Error(`no column of kind ${kind} here`);
  }
}

const table = pgSchema('peers').table(
  'bhavcopy_cm',
  Object.fromEntries(fields.map((field) => [field.column, columnFor(field)])),
);
const target = KEY.map((column) => table[column as keyof typeof table]) as never;
const set = Object.fromEntries(
  fields
    .filter(({ column }) => !(KEY as readonly string[]).includes(column))
    .map(({ column }) => [column, sql.raw(`excluded.${column}`)]),
);

const pool = new Pool({ connectionString: url, max: CONNECTIONS });
const db = drizzle({ client: pool });
await forEachBatch(folder, BATCH, (rows) =>
  db.insert(table).values(rows).onConflictDoUpdate({ target, set }),
);
await pool.end();
