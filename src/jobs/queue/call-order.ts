import { type Day, daysBetween } from '../../core/days.ts';
import { operations } from '../../operations/registry.ts';
import type { RunKind } from '../../state/request.ts';

// The order in which calls are made (pure). BullMQ gives workers the job with the lowest priority number first, and of
// equal ones the job that was added first, so that the whole order is one number, at most 2^21 - 1.

/** Of windows whose response the source has prepared or is preparing. */
export const PREPARED_PRIORITY = 1;

/** More than the age of any day. */
const CLASS_SIZE = 2 ** 16;

/** Operations are ordered from 1 on; this is for backfills, which have a queue of their own. */
const BACKFILL_ORDER = 4;

interface OrderedWindow {
  readonly kind: RunKind;
  readonly operation: string;
  readonly to: Day;
  /** True if it is a piece of a window that was split. */
  readonly piece: boolean;
  /** True if the source is preparing the response. */
  readonly prepared: boolean;
}

/**
 * The priority of a window: what is prepared, pieces of split windows, then windows of a night by the order of their
 * operation, or those of backfills; and of these the newest day first, so that the first day that is too old for the source
 * shows that all which wait are.
 */
export function computePriority({ kind, operation: name, to, piece, prepared }: OrderedWindow): number {
  if (prepared) return PREPARED_PRIORITY;
  const age = Math.max(0, daysBetween(to, '2100-01-01'));
  const operation = operations.find((candidate) => candidate.name === name);
  const order = kind === 'nightly' ? (operation?.schedule.order ?? BACKFILL_ORDER) : BACKFILL_ORDER;
  return (piece ? 0 : order * CLASS_SIZE) + PREPARED_PRIORITY + age;
}
