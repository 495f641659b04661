import type { Scalar } from '../operations/table.ts';
import { lossyToken } from './decimals.ts';

/** A value that cannot be stored, and why; the sentence follows the field's name. */
export class Refusal {
  readonly problem: string;

  constructor(problem: string) {
    this.problem = problem;
  }
}

/** Reads one value as sent. Null, missing and blank text are null; what cannot be read is refused. */
export type Reader = (value: unknown) => Scalar | Refusal;

/** Says why a value was refused; the value itself is quoted, shortened and made printable. */
export function refuse(value: unknown, expected: string): Refusal {
  const token = lossyToken(value);
  if (token !== null) return new Refusal(`${shorten(token)} has more digits than can be read without loss`);
  if (typeof value === 'object' && value !== null) {
    return new Refusal(`is ${Array.isArray(value) ? 'a list' : 'an object'}, not ${expected}`);
  }
  const shown = typeof value === 'string' ? JSON.stringify(shorten(value)) : String(value);
  return new Refusal(`${shown} is not ${expected}`);
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
