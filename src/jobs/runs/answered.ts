import type { Day } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import type { AnswerCount } from '../../load/state/coverage/coverage.ts';
import { BHAV_COPY, expectedVariants, isQuarterly, type Operation } from '../../operations/operation.ts';

/**
 * The instruments for which a question about a day is answered: all of them, or some, with one bit for each place in
 * the list of instruments. Bits, because ten years of 2,500 instruments are twelve million answers.
 */
export type Answered = 'all' | Uint8Array;

/** More than any chain of operations has; a circle of them ends here. */
const DEEPEST = 5;

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

/** The operation whose rows tell what another one asks for; null if that is known without rows. */
export function listedBy({ windows }: Pick<Operation, 'windows'>, named: boolean): string | null {
  if (windows.per === 'row') return windows.of;
  return windows.per === 'instrument' && !named ? BHAV_COPY : null;
}

/**
 * Divides the targets of a run into those that can be planned and those that wait for others of them, which are about
 * to load what tells their questions. The first of a chain never waits, so each division gets further.
 *
 * @param listOf the operation that tells what this one asks for; null if none does.
 * @param plan plans a target. @returns whether it has anything to ask for.
 * @returns the targets that wait.
 */
export async function planUnlessWaiting<Target extends Pair>(
  targets: readonly Target[],
  listOf: (operation: string) => string | null,
  plan: (target: Target) => Promise<() => boolean>,
): Promise<Target[]> {
  const depthOf = (operation: string, deepest = DEEPEST): number => {
    const list = listOf(operation);
    return list === null || deepest === 0 ? 0 : 1 + depthOf(list, deepest - 1);
  };
  /** The pair that tells what a target asks for. */
  const awaits = ({ operation, exchange }: Target): string | null => {
    const list = listOf(operation);
    return list === null ? null : pairName({ operation: list, exchange });
  };
  const awaited = new Set(targets.map(awaits));
  /** Pairs that are about to be loaded. */
  const coming = new Set<string>();
  const waiting = new Set<Target>();
  const byDepth = targets.map((target) => ({ target, depth: depthOf(target.operation) }));
  for (const { target } of byDepth.sort((a, b) => a.depth - b.depth)) {
    if (coming.has(awaits(target) ?? '')) {
      waiting.add(target);
      coming.add(pairName(target));
      continue;
    }
    const hasPending = await plan(target);
    if (awaited.has(pairName(target)) && hasPending()) coming.add(pairName(target));
  }
  return targets.filter((target) => waiting.has(target));
}
