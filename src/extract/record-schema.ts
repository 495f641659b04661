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

/** The schema generated from a table's fields, with null for what cannot be read in those that mean nothing; dates without an offset are taken to be in `timeZone`. */
export function schemaOf(table: TableDefinition, timeZone: string): RowSchema {
  const name = `${table.name} ${timeZone}`;
  let schema = schemas.get(name);
  if (schema === undefined) {
    const readers = readersOf(table, timeZone);
    const fields = table.fields.map((field) => {
      const read = readers.get(field.column) as ValueReader;
      return [field.column, fieldSchema(field.meaningless === true ? tolerant(read) : read)];
    });
    schema = z.object(Object.fromEntries(fields)) as RowSchema;
    schemas.set(name, schema);
  }
  return schema;
}

const readers = new Map<string, ReadonlyMap<string, ValueReader>>();

/** The reader of each column of a table: from the value as sent to the stored value, or what is wrong with it. */
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
 * An index entry of Postgres has at most 2,704 bytes, enough for three texts of this length in any script. A longer one
 * would make the statement fail, and with it all other rows.
 */
const MAX_KEY_TEXT = 200;

/** The reader of a field. A missing value becomes the declared default, null, or a problem. */
function fieldReader(field: Field, inKey: boolean, timeZone: string): ValueReader {
  const read: ValueReader = readerOf(field.kind, timeZone);
  // Values of the request were checked with the request, and may be empty on purpose.
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

/** Reads null instead of what cannot be read. */
function tolerant(read: ValueReader): ValueReader {
  return (sent) => {
    const value = read(sent);
    return value instanceof InvalidValue ? null : value;
  };
}

/** The schema of a field. A core transform, because `z.transform` allocates a closure for every value. */
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

/** The reader of a kind; dates and date-times without an offset are taken to be in `timeZone`. */
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
