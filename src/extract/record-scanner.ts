import type { AskedFor, Kind } from '../operations/fields.ts';
import { countedColumns, encodeValue, type RowsWriter } from '../operations/rows.ts';
import type { Scalar } from '../operations/table.ts';
import type { Layout } from './layout.ts';
import { readersOf } from './record-schema.ts';
import { InvalidValue, type ValueReader } from './values.ts';

/**
 * Goes from the bytes of a record's JSON to the bytes of its line of COPY text, without an object between.
 *
 * @param start where the record begins in the body.
 * @returns the place behind it; -1 where it has to be read another way: then nothing was written.
 */
export type RecordScanner = (start: number, lines: RowsWriter) => number;

const TAB = 9;
const SPACE = 32;
const QUOTE = 34;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const BACKSLASH = 92;
const FIRST_BEYOND_ASCII = 128;
const SMALL_E = 101;

/** What a value is written as. */
const NULL = 0;
/** A string without escapes, in ASCII: its bytes are its letters. */
const STRING = 1;
/** Any other string. */
const ESCAPED = 2;
/** A whole number, and one with decimals: as `String` writes them, zeros at the end left out. */
const WHOLE = 3;
const DECIMAL = 4;
const TRUE = 5;
const FALSE = 6;

const TYPES = [NULL, STRING, ESCAPED, WHOLE, DECIMAL, TRUE, FALSE];

/** Bytes that are compared at once. */
const WORD = 4;
const [NULL_WORD, TRUE_WORD, FALSE_WORD] = ['null', 'true', 'fals'].map((letters) =>
  Buffer.from(letters).readInt32LE(),
);
const FALSE_LENGTH = 5;

/** Numbers of up to so many characters survive a double. */
const SAFE_DIGITS = 15;

/** Below a millionth, numbers are printed with an exponent. */
const SAFE_DECIMALS_OF_ZERO = 6;

/**
 * Values of so many characters are valid whatever they are; longer ones are left to the reader. Of the other kinds all
 * are: the last value is remembered, as neighbours have their days and times in common.
 */
const VALID: Readonly<Partial<Record<Kind, { readonly length: number; readonly types: readonly number[] }>>> =
  {
    text: { length: 200, types: [STRING, WHOLE, DECIMAL] },
    numeric: { length: SAFE_DIGITS, types: [WHOLE, DECIMAL] },
    int2: { length: 4, types: [WHOLE] },
    int4: { length: 9, types: [WHOLE] },
    int8: { length: SAFE_DIGITS, types: [WHOLE] },
  };

/** A value as it is, and as it is written. */
interface Written {
  readonly value: Scalar;
  readonly text: Buffer;
}

interface Column {
  /** Places of its keys in the record, in the order they are asked; none where all records have the same value. */
  readonly keys: readonly number[];
  readonly read: ValueReader;
  /** Which types of value are copied as they are, and up to which length. */
  readonly copies: Uint8Array;
  readonly longest: number;
  /** What stands for no value; null where that is not valid. */
  readonly blank: Written | null;
  /** May the record be stored with this value? Else it is a stray. */
  readonly accepts: (value: Scalar) => boolean;
  /** Where in the body the value stands that was read last, its type, and what it became. */
  from: number;
  to: number;
  type: number;
  last: Written | null;
}

/**
 * Makes a scanner of the records of one body that have the keys of a layout, written as in an example of them. It takes
 * a record only where it is certain what the reader of records would make of it, and that it is no stray.
 *
 * @param body in UTF-8.
 * @param example the text of a record of the layout.
 * @returns null where records of the layout cannot be read so.
 */
export function createRecordScanner(
  body: Buffer,
  layout: Layout,
  example: string,
  asked: AskedFor,
  timeZone: string,
): RecordScanner | null {
  const { shape } = layout;
  const gaps = gapsOf(layout.keys, example);
  if (shape === null || gaps === null) return null;
  const { table } = shape;
  const keyAt = new Map(layout.keys.map((key, at) => [key, at]));
  const readers = readersOf(table, timeZone);
  const counted = countedColumns(table);
  const columns: Column[] = [];
  for (const field of table.fields) {
    if (field.from === 'derived') return null;
    const { column, kind } = field;
    const read = readers.get(column) as ValueReader;
    const sources = layout.sources.find((one) => one.field === field)?.keys ?? [];
    const isDay = shape.dated && column === table.dateColumn;
    const isExchange = column === shape.exchangeColumn;
    const accepts = (value: Scalar) =>
      isDay
        ? String(value) >= asked.from && String(value) <= asked.to
        : !isExchange || typeof value !== 'string' || value === asked.exchange;
    const absent = read(field.from === 'request' ? field.value(asked) : null);
    const isValid = !(absent instanceof InvalidValue) && accepts(absent);
    if (sources.length === 0 && !isValid) return null;
    const valid = isDay || isExchange || counted.includes(column) ? undefined : VALID[kind];
    columns.push({
      keys: sources.map((key) => keyAt.get(key) as number),
      read,
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
  const named = shape.namedBy?.flatMap((name) => keyAt.get(layout.keyOf.get(name.toLowerCase()) ?? '') ?? []);
  return scannerOf(body, columns, {
    gaps,
    named: named ?? null,
    keys: layout.keys.length,
    keyColumns: table.key.length,
    counted: counted.map((column) => table.fields.findIndex((field) => field.column === column)),
  });
}

const LONGEST_EXAMPLE = 64 * 1024;

/**
 * What stands before, between and behind the values of a record; null where it does not have these keys in this
 * order, each once.
 */
function gapsOf(keys: readonly string[], example: string): Buffer[] | null {
  if (example.length > LONGEST_EXAMPLE) return null;
  const gap = /\s*[{,]\s*"(\w{1,100})"\s*:\s*/y;
  const value = /"(?:[^"\\]|\\.)*"|[^\s,{}[\]"]+/y;
  const end = /\s*\}$/y;
  const gaps: string[] = [];
  let at = 0;
  for (const key of keys) {
    gap.lastIndex = at;
    const found = gap.exec(example);
    if (found === null || found[1] !== key) return null;
    gaps.push(found[0]);
    value.lastIndex = gap.lastIndex;
    if (!value.test(example)) return null;
    at = value.lastIndex;
  }
  end.lastIndex = at;
  const last = end.exec(example);
  return last === null ? null : [...gaps, last[0]].map((one) => Buffer.from(one, 'latin1'));
}

interface Form {
  readonly gaps: readonly Buffer[];
  /** Keys of a record, and those one of which has to name the instrument. */
  readonly keys: number;
  readonly named: readonly number[] | null;
  /** How many of the columns are the key, and which are counted. */
  readonly keyColumns: number;
  readonly counted: readonly number[];
}

function scannerOf(
  body: Buffer,
  columns: readonly Column[],
  { gaps, keys, named, keyColumns, counted }: Form,
): RecordScanner {
  const words: number[] = [];
  const masks: number[] = [];
  const wordEnds = gaps.map((gap) => {
    for (let at = 0; at < gap.length; at += WORD) {
      words.push(Buffer.concat([gap.subarray(at, at + WORD), Buffer.alloc(WORD)]).readInt32LE());
      masks.push(at + WORD <= gap.length ? -1 : 2 ** (8 * (gap.length - at)) - 1);
    }
    return words.length;
  });
  // Anything may stand where a column's reader sees it in any case.
  const isRead = new Uint8Array(keys);
  for (const column of columns) if (column.keys[0] !== undefined) isRead[column.keys[0]] = 1;
  const types = new Uint8Array(keys);
  const froms = new Int32Array(keys);
  const tos = new Int32Array(keys);
  const values = {
    lengths: Int32Array.from(gaps, (gap) => gap.length),
    words: Int32Array.from(words),
    masks: Int32Array.from(masks),
    wordEnds: Int32Array.from(wordEnds),
    isRead,
    types,
    froms,
    tos,
  };
  const viewed = { bytes: body, view: new DataView(body.buffer, body.byteOffset, body.length) };
  const written: Scalar[] = columns.map(() => null);
  const room = columns.reduce((sum, { blank }) => sum + 64 + (blank?.text.length ?? 0), 0);

  /** Does one of these values surely name an instrument? Letters do, and any number but 0. */
  const isNamed = (): boolean =>
    named === null ||
    named.some((key) => {
      const type = types[key];
      const from = froms[key] as number;
      const to = tos[key] as number;
      if (type === STRING) return /^ *[a-z]/i.test(body.toString('latin1', from, to));
      return type === DECIMAL || (type === WHOLE && !(to === from + 1 && body[from] === ZERO));
    });

  return (start, lines) => {
    const next = findValues(values, viewed, start);
    if (next < 0 || !isNamed()) return -1;
    // No value is written with more than twice the bytes it is sent with, but for days and times.
    lines.reserve(2 * (next - start) + room);
    const { bytes } = lines;
    let end = lines.end;
    let keyEnd = 0;
    for (let place = 0; place < columns.length; place++) {
      const column = columns[place] as Column;
      if (place === keyColumns) keyEnd = end;
      if (place > 0) bytes[end++] = TAB;
      // The first of its values that is not blank.
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
      const value = type === NULL ? column.blank : readValue(column, body, type, from, to);
      if (value === null) return -1;
      written[place] = value.value;
      const { text } = value;
      for (let at = 0; at < text.length; at++) bytes[end++] = text[at] as number;
    }
    for (let at = 0; at < counted.length; at++)
      lines.tallies[at]?.add(written[counted[at] as number] as Scalar);
    lines.endLine(keyEnd, end);
    return next;
  };
}

interface Body {
  readonly bytes: Buffer;
  readonly view: DataView;
}

/** The values of one record, by the places of their keys: what they are, and where in the body. */
interface Values {
  /** How many bytes stand before each value and behind the last, … */
  readonly lengths: Int32Array;
  /** … which they are, four in a word, of the last of which only some count, and where the words of each end. */
  readonly words: Int32Array;
  readonly masks: Int32Array;
  readonly wordEnds: Int32Array;
  /** Of which whatever stands there is read by a column's reader in any case. */
  readonly isRead: Uint8Array;
  readonly types: Uint8Array;
  readonly froms: Int32Array;
  readonly tos: Int32Array;
}

/** Finds the values of a record. @returns the place behind it, or -1. */
function findValues(
  { lengths, words, masks, wordEnds, isRead, types, froms, tos }: Values,
  { bytes: body, view }: Body,
  start: number,
): number {
  const keys = types.length;
  let at = start;
  let word = 0;
  for (let key = 0; ; key++) {
    const after = at + (lengths[key] as number);
    // The last word may reach beyond what stands there, but not beyond the body.
    if (after + WORD > body.length) return -1;
    for (const end = wordEnds[key] as number; word < end; word++, at += WORD) {
      if ((view.getInt32(at, true) & (masks[word] as number)) !== words[word]) return -1;
    }
    at = after;
    if (key === keys) return at;
    let byte = body[at] as number;
    if (byte === QUOTE) {
      let type = STRING;
      const from = at + 1;
      for (byte = body[++at] as number; byte !== QUOTE; byte = body[++at] as number) {
        if (byte >= SPACE && byte < FIRST_BEYOND_ASCII && byte !== BACKSLASH) continue;
        // What stands here is left to JSON.parse, but for the end of the body.
        if (byte === undefined || isRead[key] === 0) return -1;
        type = ESCAPED;
        if (byte === BACKSLASH) at++;
      }
      types[key] = type;
      froms[key] = from;
      tos[key] = at++;
    } else if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
      const from = at;
      if (byte === MINUS) byte = body[++at] as number;
      const digits = at;
      const isBelowOne = byte === ZERO;
      if (isBelowOne) byte = body[++at] as number;
      else while (byte >= ZERO && byte <= NINE) byte = body[++at] as number;
      if (at === digits) return -1;
      const wholeEnd = at;
      let to = at;
      if (byte === DOT) {
        for (byte = body[++at] as number; byte >= ZERO && byte <= NINE; byte = body[++at] as number) {
          if (byte !== ZERO) to = at + 1;
        }
        if (at === wholeEnd + 1) return -1;
        if (isBelowOne && to > wholeEnd + 1 + SAFE_DECIMALS_OF_ZERO) return -1;
      }
      if (at - from > SAFE_DIGITS) return -1;
      // No column can tell -0 from 0.
      if (isBelowOne && digits > from && to === wholeEnd) return -1;
      types[key] = to === wholeEnd ? WHOLE : DECIMAL;
      froms[key] = from;
      tos[key] = to;
    } else {
      if (at + FALSE_LENGTH > body.length) return -1;
      const letters = view.getInt32(at, true);
      types[key] = letters === NULL_WORD ? NULL : letters === TRUE_WORD ? TRUE : FALSE;
      at += WORD;
      if (types[key] === FALSE && (letters !== FALSE_WORD || body[at++] !== SMALL_E)) return -1;
      froms[key] = tos[key] = at;
    }
  }
}

/** Reads a value by its column's reader, if it is not the one read last. Null where it is not valid, or of a stray. */
function readValue(column: Column, body: Buffer, type: number, from: number, to: number): Written | null {
  if (column.last !== null && type === column.type && isSame(body, from, to, column)) return column.last;
  let sent: unknown;
  try {
    sent = sentAs(
      type,
      type === ESCAPED ? body.toString('utf8', from, to) : body.toString('latin1', from, to),
    );
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

/** The value that JSON.parse makes of a text. */
function sentAs(type: number, text: string): unknown {
  if (type === STRING) return text;
  if (type === ESCAPED) return JSON.parse(`"${text}"`);
  return type === WHOLE || type === DECIMAL ? Number(text) : type === TRUE;
}
