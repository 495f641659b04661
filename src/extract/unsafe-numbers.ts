import { markNumber, parseDecimal } from '../declaration/decimals.ts';
import { tooLarge } from './diagnostics.ts';

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** True if this number token is the same, digit for digit, after it is read as a double and printed again. */
function survives(token: string): boolean {
  // Anything that is not a number is left alone: JSON.parse will fail on it.
  if (!JSON_NUMBER.test(token)) return true;
  const printed = String(Number(token));
  if (printed === token) return true;
  return JSON.stringify(parseDecimal(token)) === JSON.stringify(parseDecimal(printed));
}

const QUOTE = 34;
const BACKSLASH = 92;
const PLUS = 43;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const BRACKET = 91;
const SMALL_E = 101;
const BRACE = 123;

/** Numbers of up to this many characters are exact as doubles, unless they have an exponent. */
const SAFE_DIGITS = 15;

/**
 * The most arrays and objects of one response: some 500 days of a whole exchange. Without a limit, a hostile body of
 * `{},{},…` would take a hundred bytes of memory for every three that it sends.
 */
export const MAX_CONTAINERS = 2_000_000;

/**
 * True if a JSON text may have a number that a double cannot hold exactly: a run of 16 digits and dots, or an exponent
 * of three digits, in a number or in a string. Every such run covers a position that is looked at.
 */
function mayHaveUnsafeNumbers(json: Buffer): boolean {
  for (let at = SAFE_DIGITS; at < json.length; at += SAFE_DIGITS + 1) {
    if (!isDigitOrDot(json[at])) continue;
    let start = at;
    let end = at + 1;
    while (isDigitOrDot(json[start - 1])) start--;
    while (isDigitOrDot(json[end])) end++;
    if (end - start > SAFE_DIGITS) return true;
  }
  return false;
}

/** By the code of a character: 1 for digits and dots. */
const DIGITS_AND_DOT = Uint8Array.from({ length: 256 }, (_, byte) =>
  (byte >= ZERO && byte <= NINE) || byte === DOT ? 1 : 0,
);

const isDigitOrDot = (byte: number | undefined): boolean => DIGITS_AND_DOT[byte as number] === 1;

/** An exponent with which a number of few digits may be too large or too small for a double. */
const LARGE_EXPONENT = /[\d.][eE][-+]?\d{3}/;

/** True if a JSON text may have more than MAX_CONTAINERS arrays and objects; each takes two bytes. */
export function mayHaveTooMany(json: Buffer): boolean {
  if (json.length < 2 * MAX_CONTAINERS) return false;
  let openings = 0;
  for (const opening of [BRACE, BRACKET])
    for (let at = json.indexOf(opening); at !== -1; at = json.indexOf(opening, at + 1)) openings++;
  return openings > MAX_CONTAINERS;
}

/**
 * Replaces every number token of a JSON text (UTF-8) that a double cannot hold exactly with a marked string, because
 * JSON.parse would round it silently; null if there is none. Numbers inside strings are left alone. One pass over the
 * bytes, and only of texts that may have one.
 *
 * @param text the same as a string.
 * @throws PipelineError `too_large` for more than two million arrays and objects.
 */
export function markUnsafeNumbers(json: Buffer, text = json.toString('latin1')): Buffer | null {
  if (!mayHaveUnsafeNumbers(json) && !LARGE_EXPONENT.test(text) && !mayHaveTooMany(json)) return null;
  const parts: Buffer[] = [];
  let copied = 0;
  let containers = 0;
  const { length } = json;
  for (let at = 0; at < length; at++) {
    const byte = json[at] as number;
    if (byte === QUOTE) {
      // To the end of the string, skipping escaped characters such as quotes.
      for (at++; at < length; at++) {
        const inside = json[at] as number;
        if (inside === QUOTE) break;
        if (inside === BACKSLASH) at++;
      }
    } else if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
      const start = at;
      let exponent = false;
      for (at++; at < length; at++) {
        const next = json[at] as number;
        if ((next >= ZERO && next <= NINE) || next === DOT) continue;
        if ((next | 32) !== SMALL_E && next !== PLUS && next !== MINUS) break;
        exponent = true;
      }
      if (exponent || at - start > SAFE_DIGITS) {
        const token = json.toString('latin1', start, at);
        if (!survives(token)) {
          parts.push(json.subarray(copied, start), Buffer.from(markNumber(token)));
          copied = at;
        }
      }
      at--;
    } else if (byte === BRACKET || byte === BRACE) {
      if (++containers > MAX_CONTAINERS) throw tooLarge(`more than ${MAX_CONTAINERS} records`);
    }
  }
  if (parts.length === 0) return null;
  parts.push(json.subarray(copied));
  return Buffer.concat(parts);
}
