import type { Day } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { BHAV_COPY, expectedVariants, isQuarterly, type Operation } from '../../declaration/operation.ts';
import type { ResponseCount } from '../../state/coverage/coverage.ts';

/**
 * The instruments for which a request about a day is covered: all of them, or some, with one bit for each position in
 * the list of instruments. Bits, because ten years of 2,500 instruments are twelve million entries.
 */
export type Covered = 'all' | Uint8Array;

/** The key of a request about a day. */
export const requestKey = (day: Day, variant: string) => `${day}|${variant}`;

/**
 * True if the request is covered for the instruments from position `first` up to but not including `last`. If these are
 * equal, the request is about the whole exchange.
 */
export function areCovered(covered: Covered | undefined, first: number, last: number): boolean {
  if (covered === undefined || covered === 'all') return covered === 'all';
  for (let position = first; position < last; position += 1) {
    if (((covered[position >> 3] as number) & (1 << (position & 7))) === 0) return false;
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

/** Marks instruments as covered, by their positions in the list of instruments. */
export function markCovered(bits: Uint8Array | undefined, positions: readonly number[]): void {
  if (bits === undefined) return;
  for (const position of positions)
    bits[position >> 3] = (bits[position >> 3] as number) | (1 << (position & 7));
}

/** The operation whose rows list the instruments that another one requests; null if these are known without rows. */
export function listedBy({ windows }: Pick<Operation, 'windows'>, named: boolean): string | null {
  return windows.per === 'instrument' && !named ? BHAV_COPY : null;
}

/**
 * Divides the targets of a run into those that can be planned and those that wait for others of them, which are about
 * to load what shows their requests.
 *
 * @param listOf the pair that shows what a target requests; null if none does.
 * @param plan plans a target. @returns whether it has anything to request.
 * @returns the targets that wait.
 */
export async function planUnlessWaiting<Target extends Pair>(
  targets: readonly Target[],
  listOf: (target: Target) => Pair | null,
  plan: (target: Target) => Promise<() => boolean>,
): Promise<Target[]> {
  /** The pair that shows what a target requests. */
  const awaits = (target: Target): string | null => {
    const list = listOf(target);
    return list === null ? null : pairName(list);
  };
  const awaited = new Set(targets.map(awaits));
  /** Pairs that are about to be loaded. */
  const coming = new Set<string>();
  const waiting = new Set<Target>();
  const [first, then] = [targets.filter((target) => awaits(target) === null), targets.filter(awaits)];
  for (const target of [...first, ...then]) {
    if (coming.has(awaits(target) ?? '')) {
      waiting.add(target);
      continue;
    }
    const hasPending = await plan(target);
    if (awaited.has(pairName(target)) && hasPending()) coming.add(pairName(target));
  }
  return targets.filter((target) => waiting.has(target));
}
