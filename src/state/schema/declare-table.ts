import type { BuildExtraConfigColumns } from 'drizzle-orm';
import {
  bigserial,
  customType,
  date,
  jsonb,
  type PgColumnBuilderBase,
  type PgTableExtraConfigValue,
  bigint as pgBigint,
  boolean as pgBoolean,
  integer as pgInteger,
  numeric as pgNumeric,
  smallint as pgSmallint,
  text as pgText,
  timestamp,
} from 'drizzle-orm/pg-core';
import { forEachCount, type RecordCounts } from '../../core/record-counts.ts';
import { etl } from './columns.ts';
import { addDescription } from './describe.ts';

// A column is declared once, with what it holds; drizzle names it after its key.

const meanings = new WeakMap<PgColumnBuilderBase, string>();

function column<Builder extends PgColumnBuilderBase>(meaning: string, builder: Builder): Builder {
  meanings.set(builder, meaning);
  return builder;
}

export const id = (meaning: string) => column(meaning, bigserial({ mode: 'number' }).primaryKey());
export const text = (meaning: string) => column(meaning, pgText());
export const texts = (meaning: string) => column(meaning, pgText().array());
export const oneOf = <Value extends string>(values: readonly [Value, ...Value[]], meaning: string) =>
  column(meaning, pgText({ enum: values }));
export const number = (meaning: string) => column(meaning, pgBigint({ mode: 'number' }));
export const integer = (meaning: string) => column(meaning, pgInteger());
export const smallint = (meaning: string) => column(meaning, pgSmallint());
/** A numeric as text, with all its digits. */
export const numeric = (meaning: string) => column(meaning, pgNumeric());
/** A numeric as a number of JavaScript. */
export const decimal = (meaning: string) => column(meaning, pgNumeric({ mode: 'number' }));
export const boolean = (meaning: string) => column(meaning, pgBoolean());
export const json = (meaning: string) => column(meaning, jsonb());
export const day = (meaning: string) => column(meaning, date({ mode: 'string' }));
export const moment = (meaning: string) => column(meaning, timestamp({ withTimezone: true, mode: 'string' }));
/** Where a response stands in the one order of responses, see `core/position.ts`. */
export const position = (meaning: string) =>
  column(meaning, timestamp({ withTimezone: true, precision: 6, mode: 'string' }));
export const bytes = (meaning: string) =>
  column(meaning, customType<{ data: Buffer }>({ dataType: () => 'bytea' })());
export const count = (meaning: string) => number(meaning).notNull().default(0);

// Columns that several tables have.
export const operation = () => text('Operation of the source.').notNull();
export const exchange = () => text('Exchange that was requested.').notNull();
export const keyHash = () => text('Hash of the access key; never the key.');

/** What the columns of `RecordCounts` count. */
const COUNTS: Readonly<Record<keyof RecordCounts, string>> = {
  fetched: 'Records received: the sum of inserted, updated, unchanged, stale, duplicate and rejected.',
  inserted: 'Rows that were new.',
  updated: 'Rows whose values changed.',
  unchanged: 'Rows that were stored already with the same values.',
  stale: 'Records older (source_saved_at) than the stored row.',
  duplicate: 'Records whose key occurs again in the same response; the newest was kept.',
  rejected: 'Records that failed validation; see etl.rejects.',
  withdrawn: 'Rows that the source no longer lists.',
};

export const recordCounts = () => forEachCount((name) => count(COUNTS[name]));

/** The window that a row is about, with the window's run, operation and exchange. */
export const ofWindow = (run: string, window: string) => ({
  run_id: number(run).notNull(),
  window_id: number(window).notNull(),
  operation: operation(),
  exchange: exchange(),
});

/** The rest of what a window requests. */
export const requested = (variant: string) => ({
  from_date: day('First day requested.').notNull(),
  to_date: day('Last day requested.').notNull(),
  instruments: texts('Instruments requested; empty means the whole exchange.').notNull(),
  variant: text(variant).notNull(),
  is_filtered: boolean('Whether it was narrowed to a part of the data, as in etl.windows.').notNull(),
});

/** Declares a table of `etl`. `eod migrate` writes what it and its columns hold into the database, as comments. */
export function declareTable<Name extends string, Columns extends Record<string, PgColumnBuilderBase>>(
  name: Name,
  comment: string,
  columns: Columns,
  constraints?: (table: BuildExtraConfigColumns<Name, Columns, 'pg'>) => PgTableExtraConfigValue[],
) {
  addDescription({ name, kind: 'table', comment, columns: meaningsOf(columns) });
  return etl.table(name, columns, constraints);
}

/** Declares a view of `etl` that a file of migrations/repeatable creates. */
export function declareView<Name extends string, Columns extends Record<string, PgColumnBuilderBase>>(
  name: Name,
  comment: string,
  columns: Columns,
) {
  addDescription({ name, kind: 'view', comment, columns: meaningsOf(columns) });
  return etl.view(name, columns).existing();
}

const meaningsOf = (columns: Readonly<Record<string, PgColumnBuilderBase>>): Record<string, string> =>
  Object.fromEntries(Object.entries(columns).map(([key, builder]) => [key, meanings.get(builder) ?? '']));
