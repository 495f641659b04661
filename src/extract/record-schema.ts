import { z } from 'zod';
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
    schema = z.object(
      Object.fromEntries(
        table.fields.map((field) => [
          field.column,
          fieldSchema(field, table.key.includes(field.column), timeZone),
        ]),
      ),
    ) as RowSchema;
    schemas.set(name, schema);
  }
  return schema;
}

/**
 * An index entry of Postgres holds 2,704 bytes: three texts of this length fit, whatever their
 * letters. A longer one would fail the statement, and with it all the other rows.
 */
const MAX_KEY_TEXT = 200;

/**
 * One field: read by its kind; what is absent becomes what the key holds then, or null, or a
 * problem. A core transform and not `z.transform`, which allocates a closure for every value.
 */
function fieldSchema(field: Field, inKey: boolean, timeZone: string) {
  // What only the request knows was checked with the request, and may be empty on purpose.
  const read: ValueReader = readerOf(field.kind, timeZone);
  const blank = field.from === 'request' && field.kind === 'text' ? '' : (field.absent ?? null);
  const required = field.required === true && blank === null;
  return new z.core.$ZodTransform({
    type: 'transform',
    transform: (input, payload) => {
      const value = read(input);
      if (value instanceof InvalidValue) {
        payload.issues.push({ code: 'custom', message: value.problem, input, path: [] });
        return null;
      }
      if (inKey && typeof value === 'string' && value.length > MAX_KEY_TEXT) {
        const message = `is longer than ${MAX_KEY_TEXT} characters, too long for a key`;
        payload.issues.push({ code: 'custom', message, input, path: [] });
        return null;
      }
      if (value !== null) return value;
      if (required) payload.issues.push({ code: 'custom', message: 'is missing', input, path: [] });
      return blank;
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
