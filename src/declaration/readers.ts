import type { Field, Kind } from './fields.ts';
import type { TableDefinition } from './table.ts';
import { createDateReader, createDatetimeReader } from './time-readers.ts';
import {
  InvalidValue,
  readBoolean,
  readInt2,
  readInt4,
  readInt8,
  readNumeric,
  readText,
  type ValueReader,
} from './value-readers.ts';

/** Remembers what is made for a table and a time zone. */
export function madeOnce<Made>(make: (table: TableDefinition, timeZone: string) => Made) {
  const byTable = new WeakMap<TableDefinition, Map<string, Made>>();
  return (table: TableDefinition, timeZone: string): Made => {
    const byTimeZone = byTable.get(table) ?? new Map<string, Made>();
    byTable.set(table, byTimeZone);
    const value = byTimeZone.get(timeZone) ?? make(table, timeZone);
    byTimeZone.set(timeZone, value);
    return value;
  };
}

/** The reader of each column of a table: from the value as sent to the stored value, or what is wrong with it. */
export const readersOf = madeOnce(
  (table, timeZone): ReadonlyMap<string, ValueReader> =>
    new Map(
      table.fields.map((field) => [
        field.column,
        fieldReader(field, table.key.includes(field.column), timeZone),
      ]),
    ),
);

/**
 * An index entry of Postgres has at most 2,704 bytes, enough for three texts of this length in any script. A longer one
 * would make the statement fail, and with it all other rows.
 */
const MAX_KEY_TEXT = 200;

/** The reader of a field. A missing value becomes the declared default, null, or a problem. */
function fieldReader(field: Field, inKey: boolean, timeZone: string): ValueReader {
  const read: ValueReader = chooseReader(field.kind, timeZone);
  // Values of the request were checked with the request, and may be empty on purpose.
  const blank = field.from === 'request' && field.kind === 'text' ? '' : (field.absent ?? null);
  const absent = field.required === true && blank === null ? new InvalidValue('is missing') : blank;
  return (sent) => {
    const value = read(sent);
    if (value === null || (typeof value === 'string' && field.blanks?.includes(value))) return absent;
    return inKey && typeof value === 'string' && value.length > MAX_KEY_TEXT
      ? new InvalidValue(`is longer than ${MAX_KEY_TEXT} characters, too long for a key`)
      : value;
  };
}

/** The reader of a kind; dates and date-times without an offset are taken to be in `timeZone`. */
export function chooseReader(kind: Kind, timeZone: string): ValueReader {
  switch (kind) {
    case 'text':
      return readText;
    case 'int2':
      return readInt2;
    case 'int4':
      return readInt4;
    case 'int8':
      return readInt8;
    case 'numeric':
      return readNumeric;
    case 'boolean':
      return readBoolean;
    case 'date':
      return createDateReader(timeZone);
    case 'datetime':
      return createDatetimeReader(timeZone);
  }
}
