import type { Day } from '../../core/days.ts';
import type { AnswerCount } from '../../load/state/coverage/coverage.ts';
import { expectedVariants, isQuarterly, type Operation } from '../../operations/operation.ts';

/**
 * The instruments for which a question about a day is answered: all of them, or some, with one bit for each place in
 * the list of instruments. Bits, because ten years of 2,500 instruments are twelve million answers.
 */
export type Answered = 'all' | Uint8Array;

/** The key of a question about a day. */
export const questionKey = (day: Day, variant: string) => `${day}|${variant}`;

/**
 * Is the question answered for the instruments from place `first` up to but not including `last`? If these are equal,
 * the question is about the whole exchange.
 */
export function areAnswered(answer: Answered | undefined, first: number, last: number): boolean {
  if (answer === undefined || answer === 'all') return answer === 'all';
  for (let place = first; place < last; place += 1) {
    if (((answer[place >> 3] as number) & (1 << (place & 7))) === 0) return false;
  }
  return first < last;
}

/**
 * Do instruments whose data may still be published count as answered? Normally they do not, and are asked for again.
 * But if an operation asks instrument by instrument and most of them have data, the few without are not asked for
 * again. Except for quarters: companies publish these figures one by one, so each of them is awaited.
 */
export function countsAwaited(operation: Operation, { variant, answers, awaited }: AnswerCount): boolean {
  if (operation.windows.per !== 'instrument' || 2 * awaited > answers) return false;
  return !isQuarterly(operation) || expectedVariants(operation)?.includes(variant) !== true;
}

/**
 * Whether a question is answered for all, some or none of the instruments (pure). An answer about the whole exchange is
 * one for each instrument.
 *
 * @param instruments how many the question is about; 0: the whole exchange.
 */
export function classifyCount(
  operation: Operation,
  instruments: number,
  count: AnswerCount,
): 'all' | 'some' | 'none' {
  const withAwaited = countsAwaited(operation, count);
  const { ofExchange } = count;
  if (ofExchange !== null && (ofExchange !== 'not_published' || withAwaited)) return 'all';
  const known = withAwaited ? count.answers : count.answers - count.awaited;
  if (known === 0) return 'none';
  return known === instruments ? 'all' : 'some';
}

/** Marks instruments as answered, by their places in the list of instruments. */
export function markAnswered(bits: Uint8Array | undefined, places: readonly number[]): void {
  if (bits === undefined) return;
  for (const place of places) bits[place >> 3] = (bits[place >> 3] as number) | (1 << (place & 7));
}
