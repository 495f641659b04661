import { randomUUID } from 'node:crypto';
import { tooLarge } from './diagnostics.ts';

/**
 * Stands before a number token that JSON.parse would round. Random per process, so that no text of
 * the source can equal it; begins with NUL, so that every reader of values stumbles over it.
 */
const LOSSY = `\u0000${randomUUID()}:`;

/** The number token as the source printed it, when the value is one that would have been rounded. */
export function lossyToken(value: unknown): string | null {
  return typeof value === 'string' && value.startsWith(LOSSY) ? value.slice(LOSSY.length) : null;
}

/** An exact decimal: `digits` (no zeros at either end) times ten to the power of `exponent`. */
export interface Decimal {
  readonly negative: boolean;
  /** Empty for zero. */
  readonly digits: string;
  readonly exponent: number;
}

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

/** Takes a decimal literal apart without losing a digit; null when the text is none. */
export function parseDecimal(text: string): Decimal | null {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const [, sign, whole = '', fraction = '', power = '0'] = match;
  const all = whole + fraction;
  if (all === '') return null;
  let start = 0;
  while (start < all.length && all.charCodeAt(start) === 48) start++;
  let end = all.length;
  while (end > start && all.charCodeAt(end - 1) === 48) end--;
  const digits = all.slice(start, end);
  const exponent = digits === '' ? 0 : Number(power) - fraction.length + (all.length - end);
  return { negative: sign === '-' && digits !== '', digits, exponent };
}

/** Does this number token survive being read as a double and printed again, digit for digit? */
function survives(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return false;
  const sent = parseDecimal(token);
  const kept = parseDecimal(String(value));
  // JSON.parse refuses what is no number at all; here it only has to come through unchanged.
  if (sent === null || kept === null) return true;
  return sent.digits === kept.digits && sent.exponent === kept.exponent && sent.negative === kept.negative;
}

const QUOTE = 34;
const BACKSLASH = 92;

/** Fewer digits than this always survive a double, unless an exponent takes them out of its range. */
const SAFE_DIGITS = 15;

/**
 * Lists and objects one answer may hold: some 500 days of a whole exchange. Beyond it a hostile
 * body of `{},{},…` would cost a hundred bytes of memory for each three it sent.
 */
const MAX_CONTAINERS = 2_000_000;

/**
 * Replaces every number token of a JSON text that a double cannot hold exactly by a marked string,
 * because JSON.parse would round it without a word. Text inside strings is left alone. One pass,
 * about a nanosecond a character.
 *
 * @throws PipelineError `too_large` for more than two million lists and objects.
 */
export function markLossyNumbers(json: string): string {
  const parts: string[] = [];
  let copied = 0;
  let containers = 0;
  for (let at = 0, length = json.length; at < length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(json, at);
    } else if (code === 45 || (code >= 48 && code <= 57)) {
      const end = endOfNumber(json, at);
      if (end - at > SAFE_DIGITS || hasExponent(json, at, end)) {
        const token = json.slice(at, end);
        if (!survives(token)) {
          parts.push(json.slice(copied, at), JSON.stringify(LOSSY + token));
          copied = end;
        }
      }
      at = end - 1;
    } else if (code === 91 || code === 123) {
      if (++containers > MAX_CONTAINERS) throw tooLarge(`more than ${MAX_CONTAINERS} records`);
    }
  }
  if (parts.length === 0) return json;
  parts.push(json.slice(copied));
  return parts.join('');
}

/** Index of the quote that ends the string starting at `at`; the text's length when none does. */
function endOfString(json: string, at: number): number {
  let next = at + 1;
  for (const length = json.length; next < length; next++) {
    const code = json.charCodeAt(next);
    if (code === QUOTE) return next;
    if (code === BACKSLASH) next++;
  }
  return next;
}

/** Index after the number token that starts at `at`. */
function endOfNumber(json: string, at: number): number {
  let next = at + 1;
  for (const length = json.length; next < length; next++) {
    const code = json.charCodeAt(next);
    const part =
      (code >= 48 && code <= 57) || code === 46 || code === 43 || code === 45 || (code | 32) === 101;
    if (!part) break;
  }
  return next;
}

function hasExponent(json: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if ((json.charCodeAt(at) | 32) === 101) return true;
  return false;
}
