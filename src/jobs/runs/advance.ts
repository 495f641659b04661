import { transaction } from '../../load/database/transaction.ts';
import { takeDeferred } from '../../load/state/runs.ts';
import { insertWindows } from '../../load/state/windows/plan.ts';
import { hasOpenWindows } from '../../load/state/windows/windows.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from '../worker/enqueue.ts';
import { closeRun, followUpRuns } from './finish.ts';
import { planDeferred } from './plan-run.ts';

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
  if (ended === null) return;
  // The window has ended and the run has: what fails here is done later, and fails neither.
  await followUpRuns(context).catch((error) => {
    context.log.warn(
      { runId, err: error },
      'could not do what follows the end of the run; it is tried again',
    );
  });
}

async function planWaiting(context: QueueContext, runId: number): Promise<boolean> {
  return transaction(context.db, async (tx) => {
    const deferred = await takeDeferred(tx, runId);
    if (deferred === null) return false;
    await insertWindows(tx, runId, await planDeferred(context, deferred.request, deferred.targets));
    return true;
  });
}
