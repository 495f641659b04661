import { randomUUID } from 'node:crypto';

/**
 * Marks a number token that JSON.parse would round. Random per process, so that no text of the source can equal it, and
 * beginning with NUL, which no value may contain, so that every reader notices it.
 */
const UNSAFE_NUMBER = `\u0000${randomUUID()}:`;

/** The text that stands for a number token, as JSON has it. */
export const markNumber = (token: string): string => JSON.stringify(UNSAFE_NUMBER + token);

/** The number token as the source printed it, if the value is one that would have been rounded; else null. */
export function readMarkedNumber(value: unknown): string | null {
  return typeof value === 'string' && value.charCodeAt(0) === 0 && value.startsWith(UNSAFE_NUMBER)
    ? value.slice(UNSAFE_NUMBER.length)
    : null;
}

/** An exact decimal: `digits` (no zeros at either end) times ten to the power of `exponent`. */
interface Decimal {
  readonly isNegative: boolean;
  /** Empty for zero. */
  readonly digits: string;
  readonly exponent: number;
}

/** The character code of `0`. */
const ZERO = 48;
const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

/** Parses a decimal literal without losing a digit; null if the text is none. */
export function parseDecimal(text: string): Decimal | null {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const [, sign, integer = '', fraction = '', power = '0'] = match;
  const all = integer + fraction;
  if (all === '') return null;
  let start = 0;
  while (all.charCodeAt(start) === ZERO) start++;
  let end = all.length;
  while (all.charCodeAt(end - 1) === ZERO) end--;
  const digits = all.slice(start, end);
  const exponent = digits === '' ? 0 : Number(power) - fraction.length + (all.length - end);
  return { isNegative: sign === '-' && digits !== '', digits, exponent };
}
