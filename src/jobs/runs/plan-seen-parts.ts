import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { today } from '../../core/clock.ts';
import { isPart, partsOf, partVariant } from '../../declaration/operation.ts';
import { operationNamed, operations } from '../../operations/registry.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import { listVariants } from '../../state/windows/read-windows.ts';
import type { Context } from '../context.ts';
import { storedParts } from './plan-input.ts';

/**
 * Plans the parts that responses of a run have shown and that it has not requested, e.g. a sector that is new or
 * spelled otherwise: without them, companies would be missing.
 */
export async function planSeenParts(
  context: Context,
  runId: number,
  tx: NodePgDatabase,
): Promise<PlannedWindow[]> {
  const inParts = operations.filter((operation) => partsOf(operation) !== undefined).map(({ name }) => name);
  const planned: PlannedWindow[] = [];
  for (const { operation: name, exchange, variants } of await listVariants(tx, runId, inParts)) {
    const operation = operationNamed(name);
    const parts = partsOf(operation);
    // The user may have requested something else than the whole list.
    if (parts === undefined || !variants.some((variant) => isPart(operation, variant))) continue;
    const requested = new Set(variants.map((variant) => variant.toLowerCase()));
    const day = today(context.clock, context.config.EOD_TIMEZONE);
    for (const value of await storedParts(context, operation, exchange)) {
      const variant = partVariant(parts, value);
      if (requested.has(variant.toLowerCase())) continue;
      requested.add(variant.toLowerCase());
      const window: PlannedWindow = {
        operation: name,
        exchange,
        from: day,
        to: day,
        instruments: [],
        params: { [parts.param]: value },
        variant,
        filtered: false,
        state: 'pending',
        reason: null,
      };
      planned.push(window);
    }
  }
  return planned;
}
