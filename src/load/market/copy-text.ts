import { EncodedRows, encodeValue, type Rows } from '../../operations/rows.ts';
import type { Row, Scalar, TableDefinition } from '../../operations/table.ts';

/** Text is handed to the socket in pieces of about this many bytes. */
const PIECE = 64 * 1024;

/**
 * Rows as COPY text in UTF-8, in pieces: the table's columns in order, behind the row's place in the answer or before
 * what all rows have in common. A generator, so that COPY takes the next piece only when the socket has room for it.
 * The bytes are those of `encodeValue` for each value, but most are written without making a string.
 *
 * @param line.places whether each line begins with the place of its row.
 * @param line.audit further columns, encoded, each behind a tab.
 */
export function* encodeRows(
  table: TableDefinition,
  rows: Rows,
  { places = false, audit = '' }: { readonly places?: boolean; readonly audit?: string },
): Generator<Buffer> {
  const writeRow = rows instanceof EncodedRows ? lineWriter(rows) : rowWriter(table, rows);
  let end = 0;
  for (let place = 0; place < rows.length; place += 1) {
    if (places) {
      end = writeNumber(place, reserve(end));
      scratch[end++] = TAB;
    }
    end = writeText(audit, writeRow(place, end));
    scratch[end++] = NEWLINE;
    if (end >= PIECE) {
      yield takePiece(end);
      end = 0;
    }
  }
  if (end > 0) yield takePiece(end);
}

/** Where lines are written before they are handed on. It is empty whenever a piece has been taken. */
let scratch = Buffer.allocUnsafe(2 * PIECE);

function takePiece(end: number): Buffer {
  const piece = Buffer.from(scratch.subarray(0, end));
  // It has grown for a very long line, which need not come again.
  if (scratch.length > 8 * PIECE) scratch = Buffer.allocUnsafe(2 * PIECE);
  return piece;
}

/** Bytes that are free before any value is written: enough for a number or a short text, and what stands around it. */
const SPARE = 128;

/** Makes room for so many bytes, and some more. @returns the place as it is. */
function reserve(place: number, bytes = 0): number {
  if (place + bytes + SPARE > scratch.length) {
    const larger = Buffer.allocUnsafe(2 * (place + bytes + SPARE));
    scratch.copy(larger, 0, 0, place);
    scratch = larger;
  }
  return place;
}

/** Writes the line of rows that are text already. */
function lineWriter({ text, ends }: EncodedRows): (place: number, start: number) => number {
  return (place, start) => {
    const from = place === 0 ? 0 : (ends[place - 1] as number);
    const to = ends[place] as number;
    const end = reserve(start, to - from);
    text.copy(scratch, end, from, to);
    return end + to - from;
  };
}

/** Writes the values of a row from this place on. @returns the place behind them. */
type RowWriter = (row: Row, start: number) => number;

const rowWriters = new WeakMap<TableDefinition, RowWriter>();

/** The writer of a table's rows, with the names of its columns in its code: so each is found where it was in the row before. */
function rowWriter(table: TableDefinition, rows: readonly Row[]): (place: number, start: number) => number {
  let writer = rowWriters.get(table);
  if (writer === undefined) {
    const steps = table.fields.map(
      ({ column }, at) => `end = ${at === 0 ? 'first' : 'next'}(row[${JSON.stringify(column)}], end);`,
    );
    const source = `return (row, start) => { let end = start; ${steps.join('\n')} return end; }`;
    writer = new Function('first', 'next', source)(writeValue, writeNextValue) as RowWriter;
    rowWriters.set(table, writer);
  }
  const write = writer;
  return (place, start) => write(rows[place] as Row, start);
}

const TAB = 9;
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const BACKSLASH = 92;
const FIRST_BEYOND_ASCII = 128;
const [TRUE, FALSE, NULL] = ['t', 'f', 'N'].map((letter) => letter.charCodeAt(0)) as [number, number, number];

function writeNextValue(value: Scalar | undefined, start: number): number {
  scratch[start] = TAB;
  return writeValue(value, start + 1);
}

function writeValue(value: Scalar | undefined, place: number): number {
  const start = reserve(place);
  if (typeof value === 'number') return writeNumber(value, start);
  if (typeof value === 'string') return writeEscaped(value, start);
  if (typeof value === 'boolean') {
    scratch[start] = value ? TRUE : FALSE;
    return start + 1;
  }
  scratch[start] = BACKSLASH;
  scratch[start + 1] = NULL;
  return start + 2;
}

/** Short texts are written letter by letter, which costs less than a call of Node's own code. */
const SHORT = 64;

function writeEscaped(text: string, start: number): number {
  if (text.length > SHORT) return writeText(encodeValue(text), start);
  const bytes = scratch;
  let end = start;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (
      code >= FIRST_BEYOND_ASCII ||
      code === BACKSLASH ||
      code === TAB ||
      code === NEWLINE ||
      code === CARRIAGE_RETURN
    ) {
      return writeText(encodeValue(text), start);
    }
    bytes[end++] = code;
  }
  return end;
}

/** Writes a text as it is. */
function writeText(text: string, start: number): number {
  // A unit of UTF-16 takes three bytes of UTF-8 at most.
  const place = reserve(start, 3 * text.length);
  return place + scratch.write(text, place);
}

/** Below this, hundredths have at most 15 digits, and a double stands for one such number only. */
const MOST_WITH_HUNDREDTHS = 1e13;

/** Writes a number as `String` does: by its digits where it is whole or has two decimals at most. */
function writeNumber(value: number, start: number): number {
  const size = value < 0 ? -value : value;
  if (size < MOST_WITH_HUNDREDTHS) {
    const hundredths = Math.round(size * 100);
    if (hundredths / 100 === size) {
      let end = start;
      if (value < 0) scratch[end++] = MINUS;
      const whole = Math.floor(hundredths / 100);
      end = writeDigits(whole, end);
      const rest = hundredths - whole * 100;
      if (rest > 0) {
        const tenths = (rest / 10) | 0;
        scratch[end++] = DOT;
        scratch[end++] = ZERO + tenths;
        if (rest > tenths * 10) scratch[end++] = ZERO + rest - tenths * 10;
      }
      return end;
    }
  }
  return writeText(String(value), start);
}

const BILLION = 1e9;

/** Writes a whole number that is not negative. */
function writeDigits(value: number, start: number): number {
  if (value < BILLION) return writeSmall(value | 0, start, 1);
  const high = Math.floor(value / BILLION);
  return writeSmall((value - high * BILLION) | 0, writeDigits(high, start), 9);
}

/** Writes a number below a billion, with zeros before it up to so many digits. */
function writeSmall(value: number, start: number, least: number): number {
  let digits = 1;
  for (let power = 10; value >= power; power *= 10) digits += 1;
  const end = start + (digits < least ? least : digits);
  let rest = value;
  for (let at = end - 1; at >= start; at -= 1) {
    const next = (rest / 10) | 0;
    scratch[at] = ZERO + rest - next * 10;
    rest = next;
  }
  return end;
}
