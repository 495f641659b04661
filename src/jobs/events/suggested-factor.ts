import { faceValueRatio } from '../../extract/corporate-actions/purpose.ts';

const RATIO = /(?<![\d.])(\d{1,5}) ?(?::|FOR(?: EVERY)?) ?(\d{1,5})(?!\.?\d)/i;
const FACE_VALUES = /R[SE]\.? ?(\d{1,6}(?:\.\d{1,3})?)\D*? TO \D*?(\d{1,6}(?:\.\d{1,3})?)(?!\.?\d)/i;
const MOVE = /its price moved by (\d+(?:\.\d+)?) %/;

/** Factors that splits and bonuses usually have. */
const USUAL = ['1:2', '1:3', '1:4', '1:5', '1:10', '2:3', '2:5', '3:4', '3:5', '4:5'];

/** How far the move of a price may be from the factor of an action: the market moves it too. */
const NEAR = 0.08;

const parseFactor = (factor: string): number => {
  const [a = 0, b = 1] = factor.split(':').map(Number);
  return a / b;
};

/**
 * The factor of prices that a split, consolidation or bonus without a decision probably has (pure), as `1:5`: that of the
 * ratio or the face values in its text, or else the usual one nearest to the move of its price. Null if neither says one.
 *
 * @param text that of its issue.
 */
export function suggestedFactor(kind: string, text: string): string | null {
  if (!['split', 'consolidation', 'bonus'].includes(kind)) return null;
  const ratio = RATIO.exec(text)?.slice(1).map(Number);
  const faces = kind === 'bonus' ? null : faceValueRatio(FACE_VALUES.exec(text));
  const [first = 0, second = 0] = ratio ?? [faces?.new, faces?.old];
  if (kind === 'bonus' && first > 0 && second > 0) return `${second}:${first + second}`;
  const [less, more] = [Math.min(first, second), Math.max(first, second)];
  if (less > 0 && less < more) return kind === 'split' ? `${less}:${more}` : `${more}:${less}`;
  const percent = Number(MOVE.exec(text)?.[1]);
  const moved = kind === 'consolidation' ? 1 / (1 + percent / 100) : 1 - percent / 100;
  const off = (factor: string) => Math.abs(parseFactor(factor) / moved - 1);
  const near = USUAL.filter((factor) => off(factor) <= NEAR).toSorted((a, b) => off(a) - off(b))[0];
  if (near === undefined || kind !== 'consolidation') return near ?? null;
  return near.split(':').reverse().join(':');
}
