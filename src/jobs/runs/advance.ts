import { transaction } from '../../load/database/transaction.ts';
import { deferTargets, lockOpenRun, takeDeferred } from '../../load/state/runs/runs.ts';
import { insertWindows } from '../../load/state/windows/plan.ts';
import { hasOpenWindows } from '../../load/state/windows/windows.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from '../worker/enqueue.ts';
import { closeRun, followUpRuns } from './finish.ts';
import { planKnown, planSeenParts } from './plan-run.ts';

/**
 * Advances a run after a window has ended: once no window is open, it plans the deferred targets, then the parts that
 * its answers have shown (`planSeenParts`), and then closes the run. Any worker may call it at any time: a lock on the run's row makes sure that each step happens once.
 */
export async function advanceRun(context: QueueContext, runId: number): Promise<void> {
  const { db } = context;
  if (await hasOpenWindows(db.drizzle, runId)) return;
  while ((await planDeferredTargets(context, runId)) || (await planShownParts(context, runId))) {
    await enqueueOpenWindows(context, [runId]);
    if (await hasOpenWindows(db.drizzle, runId)) return;
  }
  const ended = await closeRun(context, runId);
  if (ended === null) return;
  // Errors do not concern the window or the run, which have ended. Workers try again later.
  await followUpRuns(context).catch((error) => {
    context.log.warn(
      { runId, err: error },
      'could not make the checks and alerts that follow the end of the run; they are tried again',
    );
  });
}

async function planDeferredTargets(context: QueueContext, runId: number): Promise<boolean> {
  return transaction(context.db, async (tx) => {
    const deferred = await takeDeferred(tx, runId);
    if (deferred === null) return false;
    const plan = await planKnown(context, deferred.request, deferred.targets);
    await insertWindows(tx, runId, plan.windows);
    // Those that wait for others of these are planned when these are loaded.
    if (plan.deferred.length > 0) await deferTargets(tx, runId, plan.deferred);
    return true;
  });
}

async function planShownParts(context: QueueContext, runId: number): Promise<boolean> {
  if ((await planSeenParts(context, runId, context.db.drizzle)).length === 0) return false;
  return transaction(context.db, async (tx) => {
    // Another worker may have planned them, or the run may have ended.
    if (!(await lockOpenRun(tx, runId))) return false;
    await insertWindows(tx, runId, await planSeenParts(context, runId, tx));
    return true;
  });
}
