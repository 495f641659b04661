import * as z from 'zod';
import { $ZodTransform } from 'zod/v4/core';
import type { Field, Kind } from '../operations/fields.ts';
import type { Row, TableDefinition } from '../operations/table.ts';
import { createDateReader, createDatetimeReader } from './times.ts';
import {
  InvalidValue,
  readBoolean,
  readInt2,
  readInt4,
  readInt8,
  readNumeric,
  readText,
  type ValueReader,
} from './values.ts';

/** The zod schema of a table's records, keyed by column: raw values in, a Row out. */
export type RowSchema = z.ZodType<Row>;

const schemas = new Map<string, RowSchema>();

/** The schema generated from a table's fields; dates without a zone are read as of `timeZone`. */
export function schemaOf(table: TableDefinition, timeZone: string): RowSchema {
  const name = `${table.name} ${timeZone}`;
  let schema = schemas.get(name);
  if (schema === undefined) {
    const fields = [...readersOf(table, timeZone)].map(([column, read]) => [column, fieldSchema(read)]);
    schema = z.object(Object.fromEntries(fields)) as RowSchema;
    schemas.set(name, schema);
  }
  return schema;
}

const readers = new Map<string, ReadonlyMap<string, ValueReader>>();

/** What reads the value of each column of a table, as sent, into the value stored or what is wrong with it. */
export function readersOf(table: TableDefinition, timeZone: string): ReadonlyMap<string, ValueReader> {
  const name = `${table.name} ${timeZone}`;
  let found = readers.get(name);
  if (found === undefined) {
    found = new Map(
      table.fields.map((field) => [
        field.column,
        fieldReader(field, table.key.includes(field.column), timeZone),
      ]),
    );
    readers.set(name, found);
  }
  return found;
}

/**
 * An index entry of Postgres holds 2,704 bytes: three texts of this length fit, whatever their
 * letters. A longer one would fail the statement, and with it all the other rows.
 */
const MAX_KEY_TEXT = 200;

/** Reads a field by its kind; what is absent becomes what the key holds then, or null, or a problem. */
function fieldReader(field: Field, inKey: boolean, timeZone: string): ValueReader {
  const read: ValueReader = readerOf(field.kind, timeZone);
  // What only the request knows was checked with the request, and may be empty on purpose.
  const blank = field.from === 'request' && field.kind === 'text' ? '' : (field.absent ?? null);
  const absent = field.required === true && blank === null ? new InvalidValue('is missing') : blank;
  return (sent) => {
    const value = read(sent);
    if (value === null) return absent;
    return inKey && typeof value === 'string' && value.length > MAX_KEY_TEXT
      ? new InvalidValue(`is longer than ${MAX_KEY_TEXT} characters, too long for a key`)
      : value;
  };
}

/** One field. A core transform and not `z.transform`, which allocates a closure for every value. */
function fieldSchema(read: ValueReader) {
  return new $ZodTransform({
    type: 'transform',
    transform: (input, payload) => {
      const value = read(input);
      if (!(value instanceof InvalidValue)) return value;
      payload.issues.push({ code: 'custom', message: value.problem, input, path: [] });
      return null;
    },
  });
}

/** The reader of a kind; dates and date-times without a zone are those of `timeZone`. */
export function readerOf(kind: Kind, timeZone: string): ValueReader {
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
