import type { Field, Naming, Shape, TableDefinition } from './declaration.ts';
import { datetime, fromRequest } from './fields.ts';

export type { Naming, RowOf, TableDefinition } from './declaration.ts';
export type { Row, Scalar } from './declaration-values.ts';

type CommonField = typeof EXCHANGE | (typeof AUDIT_FIELDS)[number];

interface TableOptions<Own extends Field, Key extends string> {
  readonly name: string;
  readonly comment: string;
  readonly key: readonly Key[];
  readonly fields: readonly Own[];
  /** Drizzle has no partitions: add `PARTITION BY RANGE` to the generated migration, as in 0000_initial.sql. */
  readonly partitionBy?: Own['column'];
  readonly names?: readonly Naming<(Own | CommonField)['column']>[];
}

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
 * @throws Error if a column is declared twice.
 */
export function defineTable<const Own extends Field, const Key extends (Own | CommonField)['column']>(
  options: TableOptions<Own, Key>,
): TableDefinition<Own | CommonField, Key> {
  const all = [EXCHANGE, ...options.fields, ...AUDIT_FIELDS];
  const names = [...all.map((field) => field.column), ...Object.keys(LOAD_AUDIT), ...Object.keys(VALIDITY)];
  const twice = names.find((name, position) => names.indexOf(name) !== position);
  if (twice !== undefined) throw new Error(`${options.name} declares the column ${twice} twice`);
  const keyFields = options.key.flatMap((column) => all.find((field) => field.column === column) ?? []);
  const fields = [...keyFields, ...all.filter((field) => !keyFields.includes(field))];
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

/** Declares a shape, with the columns and source fields of its table. */
export const defineShape = <Table extends TableDefinition>(shape: Shape<Table>) => shape;
