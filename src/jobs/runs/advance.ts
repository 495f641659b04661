import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { BHAV_COPY } from '../../declaration/operation.ts';
import { transaction } from '../../postgres/transaction.ts';
import type { Target } from '../../state/request.ts';
import { deferTargets, isKeyAccepted, readDeferred } from '../../state/runs/runs.ts';
import { insertWindows } from '../../state/windows/plan.ts';
import { hasOpenWindows, listExchangesToLoad } from '../../state/windows/read-windows.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from '../queue/enqueue.ts';
import { closeRun, followUpRuns } from './finish.ts';
import { planKnown } from './plan-run.ts';

/**
 * Advances a run after a window has ended: it plans the deferred targets that wait for no open window any more, and closes
 * the run once no window is open. Any worker may call it at any time: a lock on the run's row makes sure that each step
 * happens once.
 */
export async function advanceRun(context: QueueContext, runId: number): Promise<void> {
  const { db } = context;
  if (await hasOpenWindows(db.drizzle, runId)) {
    // Windows that fail and are tried again must not hold back what does not depend on them.
    // Until the source has accepted the key, windows are enqueued one by one.
    if ((await planDeferredTargets(context, runId, false)) || !(await isKeyAccepted(db.drizzle, runId)))
      await enqueueOpenWindows(context, [runId]);
    return;
  }
  while (await planDeferredTargets(context, runId, true)) {
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

/**
 * Plans deferred targets of a run.
 *
 * @param isIdle whether no window of the run is open; else only those are planned whose bhav copies are loaded.
 * @returns whether there were any.
 */
async function planDeferredTargets(context: QueueContext, runId: number, isIdle: boolean): Promise<boolean> {
  const { db } = context;
  const divide = async (of: NodePgDatabase, lock: boolean) => {
    const deferred = await readDeferred(of, runId, lock);
    if (deferred === null) return null;
    const { request, targets } = deferred;
    const coming = isIdle ? [] : await listExchangesToLoad(of, runId, BHAV_COPY);
    const isWaiting = ({ exchange }: Target) => coming.includes(exchange);
    const ready = targets.filter((target) => !isWaiting(target));
    return ready.length === 0 ? null : { request, ready, waiting: targets.filter(isWaiting) };
  };
  if ((await divide(db.drizzle, false)) === null) return false;
  return transaction(db, async (tx) => {
    // Another worker may have planned them.
    const division = await divide(tx, true);
    if (division === null) return false;
    const { windows } = await planKnown(context, division.request, division.ready);
    await insertWindows(tx, runId, windows);
    await deferTargets(tx, runId, division.waiting);
    return true;
  });
}
