import { parseDecimal, readMarkedNumber } from './decimals.ts';
import type { Scalar } from './table.ts';

/** A value that cannot be stored, and why. The sentence follows the name of the field. */
export class InvalidValue {
  readonly problem: string;

  constructor(problem: string) {
    this.problem = problem;
  }
}

/** Reads one value as the source sent it. Null, missing and blank text become null. */
export type ValueReader = (value: unknown) => Scalar | InvalidValue;

/** Says what was expected instead of a value, which is quoted, shortened and made printable. */
export function invalid(value: unknown, expected: string): InvalidValue {
  const token = readMarkedNumber(value);
  if (token !== null) {
    return new InvalidValue(`${shorten(token)} has more digits than can be read without loss`);
  }
  if (typeof value === 'object' && value !== null) {
    return new InvalidValue(`is ${Array.isArray(value) ? 'a list' : 'an object'}, not ${expected}`);
  }
  const shown = typeof value === 'string' ? JSON.stringify(shorten(value)) : String(value);
  return new InvalidValue(`${shown} is not ${expected}`);
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

const SHORT = 20;
/** So many digits are exact in a double. */
const EXACT_DIGITS = 15;
const SPACE = 32;
const FIRST_BEYOND_ASCII = 128;

const isVisibleAscii = (code: number): boolean => code > SPACE && code < FIRST_BEYOND_ASCII;

/** The text without white space around it. Nearly all texts have none, which `trim` is slow to see. */
export function trimmed(text: string): string {
  const isTrimmed = isVisibleAscii(text.charCodeAt(0)) && isVisibleAscii(text.charCodeAt(text.length - 1));
  return isTrimmed || text === '' ? text : text.trim();
}

/** True if there is no value, so that the next key of its field is tried. */
export function isBlank(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === 'string' && trimmed(value) === '');
}

/** The longest text of a column. */
const MAX_TEXT = 100_000;
/** What text in Postgres cannot contain: NUL, and halves of surrogate pairs. */
const UNSTORABLE = /[\0\p{Surrogate}]/u;

/** True for a short text of printable ASCII, as nearly all are. */
function isShortAscii(text: string): boolean {
  if (text.length > SHORT) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < SPACE || code >= FIRST_BEYOND_ASCII) return false;
  }
  return true;
}

/** Reads text, trimmed, because the source pads it to fixed widths; numbers become text. */
export function readText(value: unknown): Scalar | InvalidValue {
  if (typeof value === 'string') {
    if (!isShortAscii(value) && UNSTORABLE.test(value)) {
      return readMarkedNumber(value) === null
        ? new InvalidValue('contains a NUL or half a surrogate pair, which cannot be stored')
        : invalid(value, 'text');
    }
    const text = trimmed(value);
    if (text.length > MAX_TEXT) return new InvalidValue(`is longer than ${MAX_TEXT} characters`);
    return text === '' ? null : text;
  }
  if (value === null || value === undefined) return null;
  return typeof value === 'number' ? String(value) : invalid(value, 'text');
}

/** The most digits of a number in a text. */
const MAX_DIGITS = 1_000;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$/;

const DOT = 46;
const ZERO = 48;
const NINE = 57;

/** True for a few digits with at most one point between them, which nearly all numbers in texts are. */
export function isShortDecimal(text: string): boolean {
  if (text.length > SHORT) return false;
  let points = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= ZERO && code <= NINE) continue;
    if (code !== DOT || at === 0) return false;
    points += 1;
  }
  return points <= 1;
}

/** Reads a decimal number: a double that is exact as printed, or text that is kept digit for digit. */
export function readNumeric(value: unknown): Scalar | InvalidValue {
  // Adding zero turns -0, which no column can store, into 0.
  if (typeof value === 'number')
    return Number.isFinite(value) ? value + 0 : invalid(value, 'a finite number');
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string') return invalid(value, 'a number');
  const text = trimmed(value);
  if (text === '') return null;
  if (text.length > MAX_DIGITS + 8) return new InvalidValue(`has more than ${MAX_DIGITS} digits`);
  if (isShortDecimal(text)) return text;
  if (!NUMBER.test(text)) return invalid(value, 'a number');
  if (text.replace(/[eE].*$/, '').replace(/\D/g, '').length > MAX_DIGITS) {
    return new InvalidValue(`has more than ${MAX_DIGITS} digits`);
  }
  return text.startsWith('+') ? text.slice(1) : text;
}

/** The range of each kind for values sent as numbers; beyond 2^53 only text is exact. */
const INTEGER_RANGES = {
  int2: { low: -(2 ** 15), high: 2 ** 15 - 1 },
  int4: { low: -(2 ** 31), high: 2 ** 31 - 1 },
  int8: { low: Number.MIN_SAFE_INTEGER, high: Number.MAX_SAFE_INTEGER },
} as const;

function createIntegerReader(kind: keyof typeof INTEGER_RANGES): ValueReader {
  const bits = { int2: 16, int4: 32, int8: 64 }[kind];
  const low = -(2n ** BigInt(bits - 1));
  const high = 2n ** BigInt(bits - 1) - 1n;
  const safe = INTEGER_RANGES[kind];
  const range = `a whole number from ${low} to ${high}`;
  return (value) => {
    if (typeof value === 'number') {
      if (!Number.isInteger(value)) return invalid(value, 'a whole number');
      if (value >= safe.low && value <= safe.high) return value + 0;
      // Beyond 2^53 a double stands for several integers: only text is exact.
      return invalid(value, bits === 64 ? `${range} that was read without loss` : range);
    }
    if (value === null || value === undefined) return null;
    if (typeof value !== 'string') return invalid(value, 'a whole number');
    const text = trimmed(value);
    if (text === '') return null;
    if (text.length <= EXACT_DIGITS && isShortDecimal(text)) {
      const number = Number(text);
      if (!Number.isInteger(number)) return invalid(value, 'a whole number');
      return number >= safe.low && number <= safe.high ? number : invalid(value, range);
    }
    const exact = parseInteger(text);
    if (exact === null) return invalid(value, 'a whole number');
    if (exact < low || exact > high) return invalid(value, range);
    return exact >= Number.MIN_SAFE_INTEGER && exact <= Number.MAX_SAFE_INTEGER
      ? Number(exact)
      : String(exact);
  };
}

/** The integer in a text (`123`, `123.00`, `1.2E+3`), or null. */
function parseInteger(text: string): bigint | null {
  if (text.length > MAX_DIGITS || !NUMBER.test(text)) return null;
  const decimal = parseDecimal(text);
  if (decimal === null || decimal.exponent < 0) return null;
  const size = BigInt(decimal.digits || '0') * 10n ** BigInt(decimal.exponent);
  return decimal.isNegative ? -size : size;
}

export const readInt2 = createIntegerReader('int2');
export const readInt4 = createIntegerReader('int4');
export const readInt8 = createIntegerReader('int8');

/** Reads true or false: booleans, `true` and `false` in any case, 1 and 0. */
export function readBoolean(value: unknown): Scalar | InvalidValue {
  if (typeof value === 'boolean') return value;
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string' && typeof value !== 'number') return invalid(value, 'true or false');
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
      return invalid(value, 'true or false');
  }
}
