import { addDays, type Day, daysBetween } from '../core/days.ts';
import { transaction } from '../load/transaction.ts';
import type { QueueContext } from './context.ts';
import { enqueueOpenWindows } from './enqueue.ts';
import { learnRangeLimit } from './range-limits.ts';
import type { Verdict } from './verdict.ts';
import { type ClaimedWindow, type Piece, splitWindow, widePendingWindows } from './window-store.ts';

/** A range in pieces of at most `days` days, oldest first (pure). */
export function pieces(from: Day, to: Day, days: number): Piece[] {
  const parts: Piece[] = [];
  for (let start = from; start <= to; start = addDays(start, days)) {
    const end = addDays(start, days - 1);
    parts.push({ from: start, to: end < to ? end : to });
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
  await transaction(context.db, async (client) => {
    if (learned) await learnRangeLimit(client, keyHash, window.operation, days);
    await splitWindow(client, window.id, pieces(window.from, window.to, days));
    if (!learned) return;
    const { runId, operation } = window;
    for (const wide of await widePendingWindows(client, { runId, operation, days })) {
      await splitWindow(client, wide.id, pieces(wide.from, wide.to, days));
    }
  });
  context.log.info(
    { windowId: window.id, operation: window.operation, span: daysBetween(window.from, window.to) + 1, days },
    'window split',
  );
  await enqueueOpenWindows(context, [window.runId]);
}
