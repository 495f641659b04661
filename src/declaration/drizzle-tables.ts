import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  date,
  index,
  integer,
  numeric,
  type PgTable,
  pgSchema,
  primaryKey,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import type { TableDefinition } from './table.ts';

export const market = pgSchema('market');
export const marketHistory = pgSchema('market_history');

/** The drizzle column of each kind. */
const COLUMNS = {
  text: (name: string) => text(name),
  int2: (name: string) => smallint(name),
  int4: (name: string) => integer(name),
  int8: (name: string) => bigint(name, { mode: 'bigint' }),
  numeric: (name: string) => numeric(name),
  boolean: (name: string) => boolean(name),
  date: (name: string) => date(name),
  datetime: (name: string) => timestamp(name, { withTimezone: true }),
};

function loadAuditColumns() {
  return {
    first_loaded_at: timestamp('first_loaded_at', { withTimezone: true }).notNull(),
    last_changed_at: timestamp('last_changed_at', { withTimezone: true }).notNull(),
    revision: integer('revision').notNull(),
    run_id: bigint('run_id', { mode: 'bigint' }).notNull(),
    load_id: bigint('load_id', { mode: 'bigint' }).notNull(),
  };
}

/** A table and its history, which also has the columns that say when each revision was valid. */
export function drizzleTables({
  name,
  key,
  fields,
  dateColumn,
  partitioned,
}: TableDefinition): readonly [PgTable, PgTable] {
  // The day comes early in the key of a partitioned table, because loads and queries of a day read by day, and so that
  // the rows of a trading day lie side by side. Measured in docs/performance.md.
  const sortedKey = partitioned && dateColumn !== null ? [...new Set(['exchange', dateColumn, ...key])] : key;
  // Each table needs its own column builders, because drizzle binds them to it.
  const dataColumns = () =>
    Object.fromEntries(
      fields.map((field) => {
        const column = COLUMNS[field.kind](field.column);
        return [field.column, key.includes(field.column) ? column.notNull() : column];
      }),
    );
  const live = market.table(name, { ...dataColumns(), ...loadAuditColumns() }, (table) => [
    primaryKey({
      name: `${name}_pkey`,
      columns: sortedKey.map((column) => table[column as keyof typeof table]) as never,
    }),
  ]);
  const history = marketHistory.table(
    name,
    {
      ...dataColumns(),
      ...loadAuditColumns(),
      valid_from: timestamp('valid_from', { withTimezone: true }).notNull(),
      valid_to: timestamp('valid_to', { withTimezone: true }).notNull(),
      withdrawn: boolean('withdrawn').notNull(),
      replaced_by_load_id: bigint('replaced_by_load_id', { mode: 'bigint' }).notNull(),
    },
    (table) => {
      const columns = (...names: string[]) => names.map((name) => table[name as keyof typeof table]) as never;
      const day = dateColumn === null ? ['exchange'] : ['exchange', dateColumn];
      return [
        primaryKey({ name: `${name}_history_pkey`, columns: columns(...key, 'revision') }),
        // For a day in a past state.
        index(`${name}_history_day_idx`).on(...(columns(...day) as [never])),
        // Every load checks whether any row of its days was withdrawn, and nearly always none was.
        index(`${name}_history_withdrawn_idx`)
          .on(...(columns(...day) as [never]))
          .where(sql`withdrawn`),
      ];
    },
  );
  return [live, history];
}
