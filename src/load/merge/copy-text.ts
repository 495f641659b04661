import { compileReader } from '../../core/compiled-objects.ts';
import { encodeValue } from '../../declaration/rows.ts';
import type { Row, Scalar, TableDefinition } from '../../declaration/table.ts';

/** The text is handed to the socket in pieces of about this many bytes. */
const PIECE = 64 * 1024;

/**
 * Rows as COPY text in UTF-8, in pieces; each line holds the table's columns in order. A generator, so that COPY takes
 * the next piece only when the socket has room for it. The bytes are those of `encodeValue` for each value, but most
 * are written without making a string.
 *
 * @param line.positions whether each line begins with the position of its row, from 0.
 * @param line.audit further values that end every line, encoded, each after a tab.
 */
export function* encodeRows(
  { fields }: TableDefinition,
  rows: readonly Row[],
  { positions = false, audit = '' }: { readonly positions?: boolean; readonly audit?: string },
): Generator<Buffer> {
  const readRow = compileReader<Scalar>(fields.map(({ column }) => column));
  const values: (Scalar | undefined)[] = fields.map(() => null);
  let end = 0;
  for (let position = 0; position < rows.length; position += 1) {
    readRow(rows[position] as Row, values);
    if (positions) {
      end = writeNumber(position, reserve(end));
      scratch[end++] = TAB;
    }
    for (let at = 0; at < values.length; at += 1) {
      if (at > 0) scratch[end++] = TAB;
      end = writeValue(values[at], end);
    }
    end = writeText(audit, end);
    scratch[end++] = NEWLINE;
    if (end >= PIECE) {
      yield takePiece(end);
      end = 0;
    }
  }
  if (end > 0) yield takePiece(end);
}

/** The buffer that lines are written into. Every piece taken from it is a copy. */
let scratch = Buffer.allocUnsafe(2 * PIECE);

function takePiece(end: number): Buffer {
  const piece = Buffer.from(scratch.subarray(0, end));
  // It grew for a very long line: do not hold on to that memory.
  if (scratch.length > 8 * PIECE) scratch = Buffer.allocUnsafe(2 * PIECE);
  return piece;
}

/** Bytes that are free before a value is written: enough for a number or a short text, and its separators. */
const SPARE = 128;

/** Makes room for this many bytes and SPARE more from an offset on. @returns the offset. */
function reserve(offset: number, bytes = 0): number {
  if (offset + bytes + SPARE > scratch.length) {
    const larger = Buffer.allocUnsafe(2 * (offset + bytes + SPARE));
    scratch.copy(larger, 0, 0, offset);
    scratch = larger;
  }
  return offset;
}

const TAB = 9;
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const BACKSLASH = 92;
/** By the code of a character: 1 if it is written as it is, in one byte. */
const IS_PLAIN = Uint8Array.from({ length: 128 }, (_, code) =>
  [BACKSLASH, TAB, NEWLINE, CARRIAGE_RETURN].includes(code) ? 0 : 1,
);
const [TRUE, FALSE, NULL] = ['t', 'f', 'N'].map((letter) => letter.charCodeAt(0)) as [number, number, number];

function writeValue(value: Scalar | undefined, offset: number): number {
  const start = reserve(offset);
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

/** Texts up to this length are written character by character, which costs less than a call of `Buffer.write`. */
const SHORT = 64;

function writeEscaped(text: string, start: number): number {
  if (text.length > SHORT) return writeText(encodeValue(text), start);
  const bytes = scratch;
  let end = start;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (IS_PLAIN[code] !== 1) return writeText(encodeValue(text), start);
    bytes[end++] = code;
  }
  return end;
}

/** Writes a text as it is. */
function writeText(text: string, start: number): number {
  // A UTF-16 code unit takes three bytes of UTF-8 at most.
  const offset = reserve(start, 3 * text.length);
  return offset + scratch.write(text, offset);
}

/** Below this, a number of hundredths has at most 15 digits, and a double stands for only one such number. */
const MOST_WITH_HUNDREDTHS = 1e13;

/** Writes what `String` makes of a number; digit by digit where it has at most two decimals, which is faster. */
function writeNumber(value: number, start: number): number {
  const size = value < 0 ? -value : value;
  if (size < MOST_WITH_HUNDREDTHS) {
    const hundredths = Math.round(size * 100);
    if (hundredths / 100 === size) {
      let end = start;
      if (value < 0) scratch[end++] = MINUS;
      const integer = Math.floor(hundredths / 100);
      end = writeDigits(integer, end);
      const rest = hundredths - integer * 100;
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

/** Writes an integer that is not negative. */
function writeDigits(value: number, start: number): number {
  if (value < BILLION) return writeSmall(value | 0, start, 1);
  const high = Math.floor(value / BILLION);
  return writeSmall((value - high * BILLION) | 0, writeDigits(high, start), 9);
}

/** Writes an integer below a billion, padded with zeros to at least this many digits. */
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
