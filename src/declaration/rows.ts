import type { Row, RowOf, Scalar, TableDefinition } from './table.ts';

const NEEDS_ESCAPE = /[\\\t\n\r]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** Encodes a value in the text format of COPY. */
export function encodeValue(value: Scalar): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') {
    return NEEDS_ESCAPE.test(value)
      ? value.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character)
      : value;
  }
  if (typeof value === 'boolean') return value ? 't' : 'f';
  return String(value);
}

/** How often each value of a column occurs, in the order of first occurrence. */
export function countValues(rows: readonly Row[], column: string): ReadonlyMap<Scalar, number> {
  const counts = new Map<Scalar, number>();
  let last: Scalar = null;
  let times = 0;
  const addLast = () => {
    if (times > 0) counts.set(last, (counts.get(last) ?? 0) + times);
    times = 0;
  };
  for (const row of rows) {
    const value = row[column] ?? null;
    // A run of equal values needs only one access to the map.
    if (value !== last) addLast();
    last = value;
    times += 1;
  }
  addLast();
  return counts;
}

/** Rows of one table. */
export interface TableRows<Table extends TableDefinition = TableDefinition> {
  readonly table: Table;
  readonly rows: readonly RowOf<Table>[];
}

const areRowsOf = <Table extends TableDefinition>(some: TableRows, table: Table): some is TableRows<Table> =>
  some.table === table;

/** These rows with the types of their columns, if they are rows of this table; null if they are of another. */
export const rowsOf = <Table extends TableDefinition>(some: TableRows, table: Table) =>
  areRowsOf(some, table) ? some.rows : null;
