import type { Day } from '../../core/days.ts';
import type { AnswerCount } from '../../load/state/coverage.ts';
import { expectedVariants, isQuarterly, type Operation } from '../../operations/operation.ts';

/**
 * Who has an answer to a question about a day: all it is asked about, or some instruments, with a bit for each place in
 * the list of those asked about. Ten years of 2,500 instruments are twelve million answers.
 */
export type Answered = 'all' | Uint8Array;

/** Names a question about a day. */
export const questionKey = (day: Day, variant: string) => `${day}|${variant}`;

/**
 * Are the instruments from place `first` to before `last` answered? Without any (`first` is `last`) it is the whole
 * exchange that is asked about.
 */
export function areAnswered(answer: Answered | undefined, first: number, last: number): boolean {
  if (answer === undefined || answer === 'all') return answer === 'all';
  for (let place = first; place < last; place += 1) {
    if (((answer[place >> 3] as number) & (1 << (place & 7))) === 0) return false;
  }
  return first < last;
}

/**
 * Is an answer that is awaited left alone? It is asked for again; but where an operation asks instrument by instrument, and
 * most of them have theirs, the few without are not. Figures of a quarter come company by company, and each is awaited.
 */
export function leavesAwaited(operation: Operation, { variant, answers, awaited }: AnswerCount): boolean {
  if (operation.windows.per !== 'instrument' || 2 * awaited > answers) return false;
  return !isQuarterly(operation) || expectedVariants(operation)?.includes(variant) !== true;
}

/**
 * Who has an answer, as far as counts tell (pure): `some` where it has to be looked up of whom. What is known of the whole
 * exchange is known of each instrument.
 *
 * @param instruments how many are asked about; none: the whole exchange.
 */
export function judgeCount(
  operation: Operation,
  instruments: number,
  count: AnswerCount,
): 'all' | 'some' | 'none' {
  const leaves = leavesAwaited(operation, count);
  const { whole } = count;
  if (whole !== null && (whole !== 'not_published' || leaves)) return 'all';
  const known = leaves ? count.answers : count.answers - count.awaited;
  if (known === 0) return 'none';
  return known === instruments ? 'all' : 'some';
}

/** Marks who has an answer, by their places in the list of instruments. */
export function markAnswered(bits: Uint8Array | undefined, places: readonly number[]): void {
  if (bits === undefined) return;
  for (const place of places) bits[place >> 3] = (bits[place >> 3] as number) | (1 << (place & 7));
}
