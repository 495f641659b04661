import type { Config } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import type { Pair } from '../core/exchanges.ts';
import { type ExchangeSettings, exchangesOf, type Operation } from '../declaration/operation.ts';
import { defaultOperations, operations } from './index.ts';
import { allNamedBy, unknownOperation } from './registry.ts';

/** The word of EOD_OPERATIONS that stands for the operations that are requested where it is not set. */
const DEFAULT = 'default';

/** The operations that an item of EOD_OPERATIONS means. @throws PipelineError `usage` */
function resolveItem(item: string): readonly Operation[] {
  if (item.toLowerCase() === DEFAULT) return defaultOperations;
  const matches = allNamedBy(operations, item);
  if (matches.length > 0) return matches;
  const { message, remedy } = unknownOperation(item, [DEFAULT, ...operations.map(({ name }) => name)]);
  throw usageError(`EOD_OPERATIONS: ${message}`, remedy);
}

const isLeftOut = (item: string) => item.startsWith('-');

const listNames = (listed: readonly Operation[]) => listed.map(({ name }) => name).join(', ');

/**
 * The operations that EOD_OPERATIONS requests, in alphabetical order, each once: those that it names, without those that
 * it leaves out, in any order of the items.
 *
 * @throws PipelineError `usage` if it names something else, leaves out what it does not name, or requests nothing.
 */
export function requestedOperations({ EOD_OPERATIONS: items }: Pick<Config, 'EOD_OPERATIONS'>): Operation[] {
  const resolveItems = (texts: readonly string[]) => new Set(texts.flatMap(resolveItem));
  const chosen = resolveItems(items.filter((item) => !isLeftOut(item)));
  const leftOut = resolveItems(items.filter(isLeftOut).map((item) => item.slice(1).trim()));
  const notNamed = [...leftOut].filter((operation) => !chosen.has(operation));
  if (notNamed.length > 0) {
    const remedy = chosen.size === 0 ? `write ${[DEFAULT, ...items].join()}` : 'remove it from the list';
    throw usageError(`EOD_OPERATIONS leaves out ${listNames(notNamed)}, which it does not name: ${remedy}`);
  }
  const requested = operations.filter((operation) => chosen.has(operation) && !leftOut.has(operation));
  if (requested.length === 0) throw usageError('EOD_OPERATIONS leaves nothing to request: name an operation');
  return requested;
}

/**
 * The value of EOD_OPERATIONS that also leaves out this operation. If no other is requested, it is the default without
 * this one.
 */
export function settingWithout(config: Pick<Config, 'EOD_OPERATIONS'>, name: string): string {
  const hasName = (operation: Operation) => operation.name === name;
  const others = config.EOD_OPERATIONS.filter((item) => item.toLowerCase() !== name.toLowerCase());
  const items = requestedOperations(config).every(hasName) ? [DEFAULT] : others;
  const isStillNamed = items.some((item) => !isLeftOut(item) && resolveItem(item).some(hasName));
  return [...items, ...(isStillNamed ? [`-${name}`] : [])].join();
}

/** The settings that say what is requested. */
export type RequestSettings = ExchangeSettings & Pick<Config, 'EOD_OPERATIONS'>;

/** The pairs that the schedules request: each operation of the settings with their exchanges. */
export function scheduledPairs(config: RequestSettings): Pair[] {
  return requestedOperations(config).flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => ({ operation: operation.name, exchange })),
  );
}
