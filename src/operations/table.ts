import { datetime, type Field, fromRequest, type ResponseField } from './fields.ts';

/** A value to store. Days and date-times are text; so are numbers that a double cannot hold exactly. */
export type Scalar = string | number | boolean | null;

/** One validated record, by column name, without the columns of LOAD_AUDIT. */
export type Row = Record<string, Scalar>;

/**
 * The columns that name the instrument of a row. `market.instruments` is built from the rows of such tables: it states
 * what an instrument was called on a day.
 */
export interface Naming {
  readonly symbol: string;
  readonly series?: string;
  readonly isin?: string;
  readonly scripCode?: string;
  readonly name?: string;
  /** Date or date-time columns; the first that has a value is the day on which the instrument had these names. */
  readonly day: readonly [string, ...string[]];
  /** True if it had these names for the last time on the day before that. */
  readonly dayBefore?: boolean;
}

export interface TableDefinition {
  /** Name inside the schema `market`. */
  readonly name: string;
  readonly comment: string;
  /** Primary key columns, always including `exchange`; a migration may index them in another order. */
  readonly key: readonly string[];
  /** Every data column: key columns first, then values, then source audit. */
  readonly fields: readonly Field[];
  /** The column of `partitionBy`, or else the first date column of the key, if there is one: coverage, partitions and locks use it. */
  readonly dateColumn: string | null;
  /** True if the table is partitioned by year of `dateColumn`. */
  readonly partitioned: boolean;
  /** The names of instruments in its rows; all names in a row belong to the same instrument. */
  readonly names: readonly Naming[];
}

/** How the records of another data set than its own fill a table. */
export interface TableReading {
  readonly table: TableDefinition;
  /** The fields of the table, in its order, with the names that these records have. */
  readonly fields: readonly Field[];
}

interface TableOptions {
  readonly name: string;
  readonly comment: string;
  readonly key: readonly string[];
  readonly fields: readonly Field[];
  /** Drizzle has no partitions: add `PARTITION BY RANGE` to the generated migration, as in 0000_initial.sql. */
  readonly partitionBy?: string;
  readonly names?: readonly Naming[];
}

const TABLE_OPTIONS: readonly string[] = [
  'name',
  'comment',
  'key',
  'fields',
  'partitionBy',
  'names',
] satisfies (keyof TableOptions)[];

/** Columns that say when and by which load a row was written; the same on every table. */
export const LOAD_AUDIT: Readonly<Record<string, string>> = {
  first_loaded_at: 'When this row was first loaded.',
  last_changed_at: 'When this revision was written.',
  revision: 'Revision of the row: 1 when first loaded, one more at each real change.',
  run_id: 'The run (etl.runs.id) that wrote this revision.',
  load_id: 'The load (etl.loads.id) that wrote this revision.',
};

export const SOURCE_AUDIT = ['source_received_at', 'source_saved_at'] as const;

const EXCHANGE = fromRequest(
  'exchange',
  'text',
  'Exchange the record was requested for: BSE, NSE or a segment such as BFO.',
  (requested) => requested.exchange,
);

const AUDIT_FIELDS = [
  datetime(
    'receivedAt',
    'source_received_at',
    'When the source received the record from the exchange; null where it sends none.',
  ),
  datetime(
    'savedAt',
    'source_saved_at',
    'When the source saved the record; decides which of two responses is newer. Null where it sends none.',
  ),
];

/** Columns that only the history tables have. */
export const VALIDITY: Readonly<Record<string, string>> = {
  valid_from: 'From when this revision was the row, included.',
  valid_to: 'Until when this revision was the row, excluded: from then on the next one was, or none.',
  withdrawn:
    'Whether the row left the table then, because the source listed it no longer; else another revision replaced it.',
  replaced_by_load_id: 'The load (etl.loads.id) that replaced or withdrew this revision.',
};

/**
 * Declares a table of the schema `market` from its fields, and adds `exchange`, the source's audit columns and the load
 * audit columns. The order is keys, values, source audit, load audit; a column that a later migration adds comes last
 * in the database, whatever its position here.
 *
 * @throws Error if a key column has no field, a column is declared twice, or an option is misspelled.
 */
export function defineTable(options: TableOptions): TableDefinition {
  const unknown = Object.keys(options).find((option) => !TABLE_OPTIONS.includes(option));
  if (unknown !== undefined)
    throw new Error(`${options.name}: defineTable knows no ${unknown}, only ${TABLE_OPTIONS.join(', ')}`);
  const all: Field[] = [EXCHANGE, ...options.fields, ...AUDIT_FIELDS];
  const byColumn = new Map(all.map((field) => [field.column, field]));
  const names = [...all.map((field) => field.column), ...Object.keys(LOAD_AUDIT), ...Object.keys(VALIDITY)];
  const twice = names.find((name, position) => names.indexOf(name) !== position);
  if (twice !== undefined) throw new Error(`${options.name} declares the column ${twice} twice`);
  const keyFields = options.key.map((column) => {
    const field = byColumn.get(column);
    if (field === undefined) throw new Error(`${options.name} has no field for key ${column}`);
    return field;
  });
  const fields = [...keyFields, ...all.filter((field) => !options.key.includes(field.column))];
  const dateColumn = options.partitionBy ?? keyFields.find((field) => field.kind === 'date')?.column ?? null;
  return {
    name: options.name,
    comment: options.comment,
    key: options.key,
    fields,
    dateColumn,
    partitioned: options.partitionBy !== undefined,
    names: options.names ?? [],
  };
}

/**
 * A table whose records come under other names than it declares: by column, the source fields that they have instead.
 * Columns that are not named keep theirs.
 *
 * @throws Error if a named column is none that is read from responses.
 */
export function readFrom(
  table: TableDefinition,
  sources: Readonly<Record<string, Pick<ResponseField, 'source' | 'orElse' | 'compute'>>>,
): TableReading {
  const named = new Map(Object.entries(sources));
  const fields = table.fields.map((field) => {
    const other = named.get(field.column);
    if (other === undefined || field.from !== 'response') return field;
    named.delete(field.column);
    return { ...field, ...other };
  });
  const [unknown] = named.keys();
  if (unknown !== undefined) throw new Error(`${table.name} reads no column ${unknown} from responses`);
  return { table, fields };
}
