import { transaction } from '../../load/database/transaction.ts';
import { type EndedRun, finishRun, type RunEnd, takeDeferred } from '../../load/state/runs.ts';
import { hasOpenWindows, insertWindows } from '../../load/state/windows.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from '../worker/enqueue.ts';
import { afterRun } from './after-run.ts';
import { planDeferred } from './planning.ts';

/**
 * Moves a run on after a window ended: plans what waited for the bhav copies, and closes the run
 * once no window is open. Any worker may call it at any time; the run's row lock makes it happen once.
 */
export async function advanceRun(context: QueueContext, runId: number): Promise<void> {
  const { db } = context;
  if (await hasOpenWindows(db.drizzle, runId)) return;
  const planned = await planWaiting(context, runId);
  if (planned) {
    await enqueueOpenWindows(context, [runId]);
    if (await hasOpenWindows(db.drizzle, runId)) return;
  }
  const ended = await closeRun(context, runId);
  if (ended !== null) await afterRun(context, ended);
}

async function planWaiting(context: QueueContext, runId: number): Promise<boolean> {
  return transaction(context.db, async (tx) => {
    const deferred = await takeDeferred(tx, runId);
    if (deferred === null) return false;
    await insertWindows(tx, runId, await planDeferred(context, deferred.request, deferred.targets));
    return true;
  });
}

/**
 * Ends a run that has no open window left.
 *
 * @returns the run when it was this call that ended it, else null.
 */
export async function closeRun(
  { db, log }: Pick<QueueContext, 'db' | 'log'>,
  runId: number,
  end: RunEnd | null = null,
): Promise<EndedRun | null> {
  const ended = await finishRun(db.drizzle, runId, end);
  if (ended !== null) log.info({ runId, state: ended.state }, 'run has ended');
  return ended;
}
