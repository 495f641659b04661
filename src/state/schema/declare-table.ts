import type { BuildExtraConfigColumns } from 'drizzle-orm';
import {
  bigserial,
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
export const numeric = (meaning: string) => column(meaning, pgNumeric());
export const boolean = (meaning: string) => column(meaning, pgBoolean());
export const json = (meaning: string) => column(meaning, jsonb());
export const day = (meaning: string) => column(meaning, date({ mode: 'string' }));
export const moment = (meaning: string) => column(meaning, timestamp({ withTimezone: true, mode: 'string' }));

/** Declares a table of `etl`. `eod migrate` writes what it and its columns hold into the database, as comments. */
export function declareTable<Name extends string, Columns extends Record<string, PgColumnBuilderBase>>(
  name: Name,
  comment: string,
  columns: Columns,
  constraints?: (table: BuildExtraConfigColumns<Name, Columns, 'pg'>) => PgTableExtraConfigValue[],
) {
  const comments = Object.entries(columns).map(([key, builder]) => [key, meanings.get(builder) ?? '']);
  addDescription({ name, kind: 'table', comment, columns: Object.fromEntries(comments) });
  return etl.table(name, columns, constraints);
}
