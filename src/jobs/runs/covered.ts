import type { Day } from '../../core/days.ts';
import { expectedVariants, isQuarterly, type Operation } from '../../declaration/operation.ts';
import type { ResponseCount } from '../../state/coverage/coverage.ts';

/**
 * The instruments for which a request about a day is covered: all of them, or some, with one bit for each index in
 * the list of instruments. Bits, because ten years of 2,500 instruments are twelve million entries.
 */
export type Covered = 'all' | Uint8Array;

/** The key of a request about a day. */
export const requestKey = (day: Day, variant: string) => `${day}|${variant}`;

/**
 * True if the request is covered for the instruments from the index `first` up to but not including `last`. If these are
 * equal, the request is about the whole exchange.
 */
export function areCovered(covered: Covered | undefined, first: number, last: number): boolean {
  if (covered === undefined || covered === 'all') return covered === 'all';
  for (let index = first; index < last; index += 1) {
    if (((covered[index >> 3] as number) & (1 << (index & 7))) === 0) return false;
  }
  return first < last;
}

/**
 * True if instruments whose data may still be published are covered. Normally they are not, and are requested
 * again. But if an operation requests data per instrument and most of them have data, the few without are not requested
 * again. Except for quarters: companies publish these figures one by one, so each of them is awaited.
 */
export function countsAwaited(operation: Operation, { variant, responses, awaited }: ResponseCount): boolean {
  if (operation.windows.per !== 'instrument' || 2 * awaited > responses) return false;
  return !isQuarterly(operation) || expectedVariants(operation)?.includes(variant) !== true;
}

/**
 * Whether a request is covered for all, some or none of the instruments (pure). A response about the whole exchange is
 * one for each instrument.
 *
 * @param instruments how many the request is about; 0: the whole exchange.
 */
export function classifyCount(
  operation: Operation,
  instruments: number,
  count: ResponseCount,
): 'all' | 'some' | 'none' {
  const withAwaited = countsAwaited(operation, count);
  const { ofExchange } = count;
  if (ofExchange !== null && (ofExchange !== 'not_published' || withAwaited)) return 'all';
  const known = withAwaited ? count.responses : count.responses - count.awaited;
  if (known === 0) return 'none';
  return known === instruments ? 'all' : 'some';
}

/** Marks instruments as covered, by their indexes in the list of instruments. */
export function markCovered(bits: Uint8Array | undefined, indexes: readonly number[]): void {
  if (bits === undefined) return;
  for (const index of indexes) bits[index >> 3] = (bits[index >> 3] as number) | (1 << (index & 7));
}
