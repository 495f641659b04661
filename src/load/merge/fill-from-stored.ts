import type { PoolClient } from 'pg';
import { countValues } from '../../declaration/rows.ts';
import type { Row, TableDefinition } from '../../declaration/table.ts';
import { mergeSql, quote } from './merge-sql.ts';

/** Stored values that an imported file leaves as they are, because it knows less than the source that they are from. */
export interface PreservedColumns {
  /** Columns for which it has no value, or only a less precise one: they are written only where no value is stored. */
  readonly columns: readonly string[];
  /** By column, for numbers that it rounds: a stored number that differs by less than this is kept. */
  readonly rounded: Readonly<Record<string, number>>;
  /** Columns that it may leave blank although there is a value: then the stored value is kept. */
  readonly sometimesBlank?: readonly string[];
}

/**
 * Copies the stored values that are to be kept into the staged rows of a file, so that the merge finds no difference there.
 * Call it between COPY and merge, with the locks of the days held.
 *
 * @param target the table with the stored rows.
 */
export async function fillFromStored(
  client: PoolClient,
  table: TableDefinition,
  rows: readonly Row[],
  target: string,
  { columns, rounded, sometimesBlank = [] }: PreservedColumns,
): Promise<void> {
  // A file may fill several tables: not all of these are columns of this one.
  const isOwn = (column: string) => table.fields.some((field) => field.column === column);
  const assign = (column: string, value: string) => (isOwn(column) ? [`${quote(column)} = ${value}`] : []);
  const old = (column: string) => `t.${quote(column)}`;
  const incoming = (column: string) => `s.${quote(column)}`;
  const assignments = [
    ...columns.flatMap((column) => assign(column, `coalesce(${old(column)}, ${incoming(column)})`)),
    ...sometimesBlank.flatMap((column) => assign(column, `coalesce(${incoming(column)}, ${old(column)})`)),
    ...Object.entries(rounded).flatMap(([column, within]) =>
      assign(
        column,
        `case when abs(${old(column)} - ${incoming(column)}) < ${Number(within)} then ${old(column)} else ${incoming(column)} end`,
      ),
    ),
  ];
  if (assignments.length === 0) return;
  const same = table.key.map((column) => `${old(column)} = ${incoming(column)}`).join(' and ');
  const { dateColumn } = table;
  const days = dateColumn === null ? [] : [...countValues(rows, dateColumn).keys()].map(String).sort();
  const ofDays = dateColumn === null ? '' : `and ${old(dateColumn)} between $1::date and $2::date`;
  await client.query(
    `update ${mergeSql(table).stage} s set ${assignments.join(', ')} from ${target} t where ${same} ${ofDays}`,
    dateColumn === null ? [] : [days[0], days.at(-1)],
  );
}
