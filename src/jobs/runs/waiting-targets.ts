import { type Pair, pairName } from '../../core/exchanges.ts';
import { BHAV_COPY, type Operation } from '../../operations/operation.ts';

/** The operation whose rows tell what another one asks for; null if that is known without rows. */
export function listedBy({ windows }: Pick<Operation, 'windows'>, named: boolean): string | null {
  if (windows.per === 'row') return windows.of;
  return windows.per === 'instrument' && !named ? BHAV_COPY : null;
}

/** More than any chain of operations has; a circle of them ends here. */
const DEEPEST = 5;

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
