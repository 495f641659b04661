import { nearest } from '../core/input.ts';

/** What is wrong with a declaration: one sentence with the path of the field and what to write instead. */
export interface DeclarationProblem {
  /** An operation with an error cannot be used; a warning is about a name or a habit. */
  readonly level: 'error' | 'warning';
  readonly text: string;
}

/** An object of which nothing is known but that it is one. */
export type Unchecked = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Unchecked =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

export const isTime = (value: unknown): boolean =>
  typeof value === 'string' && /^([01]\d|2[0-3]):[0-5]\d$/.test(value);

const LONGEST_SHOWN = 60;

/** A value as a sentence shows it. */
export function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}

/** `a, b or c` */
export const either = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** Collects the problems of one declaration. */
export class Problems {
  readonly all: DeclarationProblem[] = [];
  private readonly prefix: string;

  /** @param file begins each sentence. */
  constructor(file: string | undefined) {
    this.prefix = file === undefined ? '' : `${file}: `;
  }

  error(text: string): void {
    this.all.push({ level: 'error', text: `${this.prefix}${text}` });
  }

  warn(text: string): void {
    this.all.push({ level: 'warning', text: `${this.prefix}${text}` });
  }

  /** Says what a value is and what to write, unless it is right. @returns whether it is. */
  check(isRight: boolean, path: string, value: unknown, remedy: string): boolean {
    if (!isRight) this.error(`${path} is ${shown(value)}: ${remedy}`);
    return isRight;
  }

  text(of: Unchecked, path: string, name: string, example: string): void {
    this.check(isText(of[name]), join(path, name), of[name], example);
  }

  boolean(of: Unchecked, path: string, name: string): void {
    this.check(typeof of[name] === 'boolean', join(path, name), of[name], 'use true or false');
  }

  oneOf(of: Unchecked, path: string, name: string, words: readonly string[]): boolean {
    return this.check(words.includes(of[name] as string), join(path, name), of[name], `use ${either(words)}`);
  }

  time(of: Unchecked, path: string, name: string): void {
    this.check(isTime(of[name]), join(path, name), of[name], 'use a time such as 21:30');
  }

  /** Names what nobody reads, with the most similar known name. */
  onlyKnown(of: Unchecked, path: string, known: readonly string[]): void {
    for (const name of Object.keys(of)) {
      if (known.includes(name)) continue;
      const similar = nearest(name, known);
      const remedy = similar === null ? `known are ${known.join(', ')}` : `did you mean ${similar}?`;
      const shownName = /^\S+$/.test(name) ? name : shown(name);
      this.error(`${join(path, shownName)} is not a name of a declaration: ${remedy}`);
    }
  }
}

/** The path of a member. */
export const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
