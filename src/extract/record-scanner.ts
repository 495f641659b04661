import { strayExchange } from '../core/exchanges.ts';
import { isRequestedDay, type Kind, plainName, type Requested } from '../operations/fields.ts';
import { countedColumns, encodeValue, type RowsWriter } from '../operations/rows.ts';
import type { Scalar, TableDefinition } from '../operations/table.ts';
import type { Layout } from './layout.ts';
import { readersOf } from './record-schema.ts';
import type { RecordReader } from './records.ts';
import { DECIMAL, ESCAPED, NULL, STRING, TYPES, type ValueScanner, WHOLE } from './scanned-values.ts';
import type { EnvelopeContext } from './types.ts';
import { InvalidValue, type ValueReader } from './values.ts';

/**
 * Turns the bytes of a record into its line of COPY text, without making an object of it.
 *
 * @param start where the record begins in the body.
 * @returns the offset after it; -1 if it has to be parsed instead, and then nothing was written.
 */
export type RecordScanner = (start: number, lines: RowsWriter) => number;

const TAB = 9;
const SPACE = 32;
const ZERO = 48;

/** Numbers of up to this many characters can be stored in a double and printed again without a change. */
const SAFE_DIGITS = 15;

/**
 * By kind of field: values of these types and up to this length are always valid and are copied as they are. Longer
 * ones, and all of the other kinds, go through the column's reader; the last one is remembered, because records next to
 * each other often have the same day or time.
 */
const VALID: Readonly<Partial<Record<Kind, { readonly length: number; readonly types: readonly number[] }>>> =
  {
    text: { length: 200, types: [STRING, WHOLE, DECIMAL] },
    numeric: { length: SAFE_DIGITS, types: [WHOLE, DECIMAL] },
    int2: { length: 4, types: [WHOLE] },
    int4: { length: 9, types: [WHOLE] },
    int8: { length: SAFE_DIGITS, types: [WHOLE] },
  };

/** A value, and its COPY text. */
interface EncodedValue {
  readonly value: Scalar;
  readonly text: Buffer;
}

interface Column {
  /** Positions of its keys in the record, in the order they are tried; none where all records have the same value. */
  readonly keys: readonly number[];
  readonly read: ValueReader;
  /** Which types of value are copied as they are (1 by type), up to the length `longest`. */
  readonly copies: Uint8Array;
  readonly longest: number;
  /** What is written for no value; null where a value is needed. */
  readonly blank: EncodedValue | null;
  /** True if a record may be stored with this value. If not, it has to be parsed instead. */
  readonly accepts: (value: Scalar) => boolean;
  /** The value read last: where it is in the body, its type, and what it became. */
  from: number;
  to: number;
  type: number;
  last: EncodedValue | null;
}

/** How the records of one body are found and read. */
interface ScannerOptions {
  readonly requested: Requested;
  readonly timeZone: string;
  /** Makes what finds the values. `isRead`, by position of a key: 1 if a column's reader always sees its value. */
  readonly valuesOf: (isRead: Uint8Array) => ValueScanner | null;
  /** By source field: turns its text into what the column's reader takes. */
  readonly texts?: ReadonlyMap<string, (text: string) => string>;
  /** By source field: the only values that a record may have. */
  readonly only?: ReadonlyMap<string, readonly Scalar[]>;
}

/** What the records of a response are read with. */
export interface Reading extends EnvelopeContext {
  readonly requested: Requested;
  readonly timeZone: string;
  readonly reader: RecordReader;
  /** Where rows of a table are written. */
  readonly rowsWriterOf: (table: TableDefinition) => RowsWriter;
  /** Takes a record that had to be parsed. */
  readonly take: (position: number, record: unknown) => void;
}

/**
 * If more records than this had to be parsed alone, and more than half of all, parsing the whole response is faster.
 */
export const MANY_PARSED = 100;

/**
 * Makes a scanner of the records of one body that have the keys of a layout. It takes a record only if it is certain
 * what the reader in records.ts would make of it, and that its day and exchange were requested.
 *
 * @returns null if records of this layout cannot be scanned.
 */
export function createRecordScanner(
  body: Buffer,
  layout: Layout,
  { requested, timeZone, valuesOf, texts, only }: ScannerOptions,
): RecordScanner | null {
  const { shape } = layout;
  if (shape === null || shape.contradiction !== undefined || layout.isNameless) return null;
  const { table } = shape;
  const keyAt = new Map(layout.keys.map((key, at) => [key, at]));
  const readers = readersOf(table, timeZone);
  const counted = countedColumns(table);
  const columns: Column[] = [];
  for (const field of table.fields) {
    if (field.from === 'derived' || (field.from === 'response' && field.compute !== undefined)) return null;
    const { column, kind } = field;
    const read = readers.get(column) as ValueReader;
    const sources = layout.sources.find((one) => one.field === field)?.keys ?? [];
    const source = field.from === 'response' ? field.source : '';
    const textOf = texts?.get(source);
    const allowed = only?.get(source);
    const isDay = shape.dated && column === table.dateColumn;
    const isExchange = column === shape.exchangeColumn;
    const accepts = (value: Scalar) =>
      (allowed?.includes(value) ?? true) &&
      (isDay ? isRequestedDay(requested, String(value)) : !isExchange || !strayExchange(value, requested));
    const absent = read(field.from === 'request' ? field.value(requested) : null);
    const isValid = !(absent instanceof InvalidValue) && accepts(absent);
    if (sources.length === 0 && !isValid) return null;
    const isLookedAt =
      isDay ||
      isExchange ||
      counted.includes(column) ||
      textOf !== undefined ||
      allowed !== undefined ||
      field.blanks !== undefined;
    const valid = isLookedAt ? undefined : VALID[kind];
    columns.push({
      keys: sources.map((key) => keyAt.get(key) as number),
      read: textOf === undefined ? read : (sent) => read(typeof sent === 'string' ? textOf(sent) : sent),
      copies: Uint8Array.from(TYPES, (type) => (valid?.types.includes(type) ? 1 : 0)),
      longest: valid?.length ?? 0,
      blank: isValid ? { value: absent, text: Buffer.from(encodeValue(absent)) } : null,
      accepts,
      from: 0,
      to: 0,
      type: NULL,
      last: null,
    });
  }
  const isRead = new Uint8Array(layout.keys.length);
  for (const column of columns) if (column.keys[0] !== undefined) isRead[column.keys[0]] = 1;
  const values = valuesOf(isRead);
  if (values === null) return null;
  const named = shape.namedBy?.flatMap((name) => keyAt.get(layout.keyOf.get(plainName(name)) ?? '') ?? []);
  return scannerOf(body, columns, values, {
    named: named ?? null,
    keyColumns: table.key.length,
    counted: counted.map((column) => table.fields.findIndex((field) => field.column === column)),
  });
}

interface ScannerFacts {
  /** Positions of the keys of which one has to name the instrument; null where none has to. */
  readonly named: readonly number[] | null;
  /** How many of the first columns are the key, and the positions of those whose values are counted. */
  readonly keyColumns: number;
  readonly counted: readonly number[];
}

function scannerOf(
  body: Buffer,
  columns: readonly Column[],
  values: ValueScanner,
  { named, keyColumns, counted }: ScannerFacts,
): RecordScanner {
  const { types, froms, tos } = values;
  const written: Scalar[] = columns.map(() => null);
  const room = columns.reduce((sum, { blank }) => sum + 64 + (blank?.text.length ?? 0), 0);

  /** True if a number is certainly not zero, however that is written, nor too small for a double. */
  const isNotZero = (from: number, to: number): boolean => {
    if (to - from > SAFE_DIGITS) return false;
    for (let at = from; at < to; at++) if ((body[at] as number) > ZERO) return true;
    return false;
  };

  /**
   * True if one of these values certainly names an instrument. Text beginning with a letter does, and any number but 0.
   */
  const isNamed = (): boolean =>
    named === null ||
    named.some((key) => {
      const type = types[key];
      const from = froms[key] as number;
      const to = tos[key] as number;
      if (type === STRING) return /^ *[a-z]/i.test(body.toString('latin1', from, to));
      return (type === DECIMAL || type === WHOLE) && isNotZero(from, to);
    });

  return (start, lines) => {
    const next = values.find(start);
    if (next < 0 || !isNamed()) return -1;
    // No value is written with more than twice the bytes it was sent with, except days and times, which have `room`.
    lines.reserve(2 * (next - start) + room);
    const { bytes } = lines;
    let end = lines.end;
    let keyEnd = 0;
    for (let position = 0; position < columns.length; position++) {
      const column = columns[position] as Column;
      if (position === keyColumns) keyEnd = end;
      if (position > 0) bytes[end++] = TAB;
      // Take the first of its values that is not blank.
      let type = NULL;
      let from = 0;
      let to = 0;
      for (let at = 0; at < column.keys.length && type === NULL; at++) {
        const key = column.keys[at] as number;
        type = types[key] as number;
        from = froms[key] as number;
        to = tos[key] as number;
        if (type === STRING) {
          while (from < to && body[from] === SPACE) from++;
          while (from < to && body[to - 1] === SPACE) to--;
          if (from === to) type = NULL;
        } else if (type === ESCAPED && column.keys.length > 1) return -1;
      }
      if (column.copies[type] === 1 && to - from <= column.longest) {
        while (from < to) bytes[end++] = body[from++] as number;
        continue;
      }
      const value = type === NULL ? column.blank : readValue(column, values, body, type, from, to);
      if (value === null) return -1;
      written[position] = value.value;
      const { text } = value;
      for (let at = 0; at < text.length; at++) bytes[end++] = text[at] as number;
    }
    for (let at = 0; at < counted.length; at++)
      lines.tallies[at]?.add(written[counted[at] as number] as Scalar);
    lines.endLine(keyEnd, end);
    return next;
  };
}

/** Reads a value with its column's reader, unless it is the one read last. Null if no record may be stored with it. */
function readValue(
  column: Column,
  values: ValueScanner,
  body: Buffer,
  type: number,
  from: number,
  to: number,
): EncodedValue | null {
  if (column.last !== null && type === column.type && isSame(body, from, to, column)) return column.last;
  let sent: unknown;
  try {
    sent = values.parse(type, from, to);
  } catch {
    return null;
  }
  const value = column.read(sent);
  if (value instanceof InvalidValue || !column.accepts(value)) return null;
  column.from = from;
  column.to = to;
  column.type = type;
  column.last = { value, text: Buffer.from(encodeValue(value)) };
  return column.last;
}

function isSame(
  body: Buffer,
  from: number,
  to: number,
  last: { readonly from: number; readonly to: number },
) {
  if (to - from !== last.to - last.from) return false;
  for (let at = 0; at < to - from; at++) if (body[from + at] !== body[last.from + at]) return false;
  return true;
}
