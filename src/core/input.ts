import { closest, distance } from 'fastest-levenshtein';
import { usageError } from './errors.ts';

/** The bounds of a number, both included; without `most` it may have up to 15 digits, which a double holds exactly. */
export interface NumberRange {
  readonly least: number;
  readonly most?: number;
}

/**
 * Parses an integer that somebody typed.
 *
 * @param name what the number is, for the message.
 * @throws PipelineError `usage` when it is none or out of range.
 */
export function parseInteger(name: string, text: string, { least, most }: NumberRange): number {
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= least && number <= (most ?? number)) return number;
  throw usageError(
    `${name}: "${text}" is not a whole number from ${least}${most === undefined ? '' : ` to ${most}`}`,
  );
}

/** If more words are known than this, the message has only the guess. */
const MAX_LISTED = 8;

/**
 * Finds the known word that was typed, in upper or lower case.
 *
 * @param flag the option it was typed for, for the message; `noun` names the kind of word.
 * @throws PipelineError `usage` that suggests the known word most like it.
 */
export function parseChoice<Word extends string>(
  flag: string,
  text: string,
  known: readonly Word[],
  noun = 'value',
): Word {
  const match = known.find((word) => word.toLowerCase() === text.toLowerCase());
  if (match !== undefined) return match;
  const guess = didYouMean(text, known);
  // A long list would hide the guess.
  const others = guess === '' || known.length <= MAX_LISTED ? ` (known: ${known.join(', ')})` : '';
  throw usageError(`${flag}: unknown ${noun} "${text}"${guess}${others}`);
}

/** `; did you mean backfill?` where a mistyped word resembles a known one, otherwise an empty text. */
export function didYouMean(word: string, known: readonly string[]): string {
  const guess = nearest(word, known);
  return guess === null ? '' : `; did you mean ${guess}?`;
}

/**
 * The known word that was probably meant, in upper or lower case; null if none is similar.
 *
 * @param maxChanges how many letters may differ, and nothing else counts. By default two, or half of the shorter word if
 *   that is more; a word that begins with what was typed, or contains it, is similar as well.
 */
export function nearest(word: string, known: readonly string[], maxChanges?: number): string | null {
  if (known.length === 0) return null;
  const lower = word.toLowerCase();
  const guess = closest(
    lower,
    known.map((name) => name.toLowerCase()),
  );
  const match = known.find((name) => name.toLowerCase() === guess) ?? null;
  if (match === null) return null;
  const changes = distance(lower, guess);
  if (maxChanges !== undefined) return changes <= maxChanges ? match : null;
  // The beginning of a name is more than a few letters that occur in another one.
  const begun = known.find((name) => name.toLowerCase().startsWith(lower));
  if (begun !== undefined && lower.length > 2 && changes > 2) return begun;
  // Two changes can replace every letter of a short word.
  const alike = changes < Math.max(lower.length, match.length);
  const near = alike && changes <= Math.max(2, Math.ceil(Math.min(lower.length, match.length) / 2));
  return near || (lower.length > 2 && guess.includes(lower)) ? match : null;
}
