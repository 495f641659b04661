import type { Kind } from '../operations/fields.ts';
import type { Scalar } from '../operations/table.ts';
import { lossyToken, parseDecimal } from './decimals.ts';
import { type Reader, Refusal, refuse } from './refusal.ts';
import { createDateReader, createDatetimeReader } from './times.ts';

/** Longest text a column takes. */
const MAX_TEXT = 100_000;
/** What Postgres text cannot hold: NUL, and halves of surrogate pairs. */
const UNSTORABLE = /[\0\p{Surrogate}]/u;

/** Text: trimmed (the source pads to fixed widths); numbers become their text. */
export function readText(value: unknown): Scalar | Refusal {
  if (typeof value === 'string') {
    if (UNSTORABLE.test(value)) {
      return lossyToken(value) === null
        ? new Refusal('holds a NUL or half a surrogate pair, which text cannot store')
        : refuse(value, 'text');
    }
    const trimmed = value.trim();
    if (trimmed.length > MAX_TEXT) return new Refusal(`is longer than ${MAX_TEXT} characters`);
    return trimmed === '' ? null : trimmed;
  }
  if (value === null || value === undefined) return null;
  return typeof value === 'number' ? String(value) : refuse(value, 'text');
}

/** Digits a numeric text may have before we take it for nonsense. */
const MAX_DIGITS = 1_000;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$/;

/** Decimal number: a double that was printed exactly, or text kept digit for digit. */
export function readNumeric(value: unknown): Scalar | Refusal {
  // Adding zero turns -0, which no column tells from 0, into 0.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : refuse(value, 'a finite number');
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string') return refuse(value, 'a number');
  const text = value.trim();
  if (text === '') return null;
  if (text.length > MAX_DIGITS + 8) return new Refusal(`has more than ${MAX_DIGITS} digits`);
  if (!NUMBER.test(text)) return refuse(value, 'a number');
  if (text.replace(/[eE].*$/, '').replace(/\D/g, '').length > MAX_DIGITS) {
    return new Refusal(`has more than ${MAX_DIGITS} digits`);
  }
  return text.startsWith('+') ? text.slice(1) : text;
}

function createWholeReader(bits: 16 | 32 | 64): Reader {
  const low = -(2n ** BigInt(bits - 1));
  const high = 2n ** BigInt(bits - 1) - 1n;
  const safeLow = Math.max(Number(low), Number.MIN_SAFE_INTEGER);
  const safeHigh = Math.min(Number(high), Number.MAX_SAFE_INTEGER);
  const range = `a whole number from ${low} to ${high}`;
  return (value) => {
    if (typeof value === 'number') {
      if (!Number.isInteger(value)) return refuse(value, 'a whole number');
      if (value >= safeLow && value <= safeHigh) return value + 0;
      // Beyond 2^53 neighbours share a double: only text says which of them was meant.
      return refuse(value, bits === 64 ? `${range} that was read without loss` : range);
    }
    if (value === null || value === undefined) return null;
    if (typeof value !== 'string') return refuse(value, 'a whole number');
    const text = value.trim();
    if (text === '') return null;
    const exact = wholeOf(text);
    if (exact === null) return refuse(value, 'a whole number');
    if (exact < low || exact > high) return refuse(value, range);
    return exact >= Number.MIN_SAFE_INTEGER && exact <= Number.MAX_SAFE_INTEGER
      ? Number(exact)
      : String(exact);
  };
}

/** The whole number a text states (`123`, `123.00`, `1.2E+3`), or null. */
function wholeOf(text: string): bigint | null {
  if (text.length > MAX_DIGITS || !NUMBER.test(text)) return null;
  const decimal = parseDecimal(text);
  if (decimal === null || decimal.exponent < 0) return null;
  const size = BigInt(decimal.digits || '0') * 10n ** BigInt(decimal.exponent);
  return decimal.negative ? -size : size;
}

export const readInt2 = createWholeReader(16);
export const readInt4 = createWholeReader(32);
export const readInt8 = createWholeReader(64);

/** Yes or no: true/false, `True`/`False` in any case, 1/0. */
export function readBoolean(value: unknown): Scalar | Refusal {
  if (typeof value === 'boolean') return value;
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string' && typeof value !== 'number') return refuse(value, 'true or false');
  switch (String(value).trim().toLowerCase()) {
    case '':
      return null;
    case 'true':
    case '1':
      return true;
    case 'false':
    case '0':
      return false;
    default:
      return refuse(value, 'true or false');
  }
}

/** The reader of a kind; dates and date-times without a zone are those of `timeZone`. */
export function readerOf(kind: Kind, timeZone: string): Reader {
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
