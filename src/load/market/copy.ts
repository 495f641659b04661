import type { Row, Scalar, TableDefinition } from '../../operations/table.ts';

/** Text is handed to the socket in pieces of about this many characters. */
const PIECE = 64 * 1024;

const NEEDS_ESCAPE = /[\\\t\n\r]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** One value in COPY's text format. */
export function encodeValue(value: Scalar): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') {
    return NEEDS_ESCAPE.test(value)
      ? value.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] as string)
      : value;
  }
  if (typeof value === 'boolean') return value ? 't' : 'f';
  return String(value);
}

/**
 * Rows as COPY text, in pieces: their place in the answer, then the table's columns in order.
 * A generator, so that COPY takes the next piece only when the socket has room for it.
 */
export function* encodeRows(table: TableDefinition, rows: readonly Row[]): Generator<string> {
  const columns = table.fields.map((field) => field.column);
  let piece = '';
  for (let place = 0; place < rows.length; place += 1) {
    const row = rows[place] as Row;
    piece += place;
    for (const column of columns) {
      piece += '\t';
      piece += encodeValue(row[column] ?? null);
    }
    piece += '\n';
    if (piece.length >= PIECE) {
      yield piece;
      piece = '';
    }
  }
  if (piece !== '') yield piece;
}
