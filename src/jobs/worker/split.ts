import { addDays, type Day, daysBetween } from '../../core/days.ts';
import { transaction } from '../../load/database/transaction.ts';
import type { ClaimedWindow } from '../../load/state/claim.ts';
import { learnRangeLimit } from '../../load/state/range-limits.ts';
import { lockWiderWindows, type Piece, splitWindow } from '../../load/state/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from './enqueue.ts';
import type { Verdict } from './verdict.ts';

/**
 * A range in pieces of at most `days` days, oldest first (pure). Given the sessions, only what holds
 * one is asked for: a call for a weekend would bring nothing.
 */
export function pieces(from: Day, to: Day, days: number, sessions?: readonly Day[]): Piece[] {
  const next = (day: Day) => (sessions === undefined ? day : sessions.find((session) => session >= day));
  const parts: Piece[] = [];
  for (let start = next(from); start !== undefined && start <= to; ) {
    const end = addDays(start, days - 1);
    parts.push({ from: start, to: end < to ? end : to });
    start = next(addDays(end, 1));
  }
  return parts;
}

/**
 * Splits a window the source would not answer as a whole. Where the source named its limit, the
 * limit is remembered and the run's other windows of the operation are split before they are asked.
 */
export async function splitAndEnqueue(
  context: QueueContext,
  window: ClaimedWindow,
  verdict: Extract<Verdict, { act: 'split' }>,
  keyHash: string,
): Promise<void> {
  const { days, learned } = verdict;
  const policy = operationNamed(window.operation).windows;
  const everyDay = policy.per !== 'range' || policy.everyDay;
  const partsOf = ({ exchange, from, to }: Pick<ClaimedWindow, 'exchange' | 'from' | 'to'>) =>
    pieces(from, to, days, everyDay ? undefined : context.calendar.sessions(exchange, from, to));
  await transaction(context.db, async (tx) => {
    if (learned) await learnRangeLimit(tx, { keyHash, operation: window.operation, days });
    await splitWindow(tx, window.id, partsOf(window));
    if (!learned) return;
    const { runId, operation } = window;
    for (const wide of await lockWiderWindows(tx, { runId, operation, days })) {
      await splitWindow(tx, wide.id, partsOf(wide));
    }
  });
  context.log.info(
    { windowId: window.id, operation: window.operation, span: daysBetween(window.from, window.to) + 1, days },
    'window split',
  );
  await enqueueOpenWindows(context, [window.runId]);
}
