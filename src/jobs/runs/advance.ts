import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { pairName } from '../../core/exchanges.ts';
import { transaction } from '../../postgres/transaction.ts';
import type { Target } from '../../state/request.ts';
import { deferTargets, isKeyAccepted, lockOpenRun, readDeferred } from '../../state/runs/runs.ts';
import { insertWindows } from '../../state/windows/plan.ts';
import { hasOpenWindows, listOpenPairs } from '../../state/windows/read-windows.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from '../queue/enqueue.ts';
import { closeRun, followUpRuns } from './finish.ts';
import { listOfTargets, planKnown } from './plan-run.ts';
import { planSeenParts } from './plan-seen-parts.ts';

/**
 * Advances a run after a window has ended: it plans the deferred targets that wait for no open window any more, and
 * once no window is open the parts that its responses have shown (`planSeenParts`), and then closes the run. Any worker
 * may call it at any time: a lock on the run's row makes sure that each step happens once.
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
  while ((await planDeferredTargets(context, runId, true)) || (await planShownParts(context, runId))) {
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
 * @param isIdle whether no window of the run is open; else only those are planned whose lists are loaded.
 * @returns whether there were any.
 */
async function planDeferredTargets(context: QueueContext, runId: number, isIdle: boolean): Promise<boolean> {
  const { db } = context;
  const divide = async (of: NodePgDatabase, lock: boolean) => {
    const deferred = await readDeferred(of, runId, lock);
    if (deferred === null) return null;
    const { request, targets } = deferred;
    if (isIdle) return { request, ready: targets, waiting: [] };
    const open = await listOpenPairs(of, runId, targets.map(listOfTargets(context, request)));
    const coming = new Set([...targets, ...open].map(pairName));
    const isWaiting = (target: Target) => {
      const list = listOfTargets(context, request)(target);
      return list !== null && coming.has(pairName(list));
    };
    const ready = targets.filter((target) => !isWaiting(target));
    return ready.length === 0 ? null : { request, ready, waiting: targets.filter(isWaiting) };
  };
  if ((await divide(db.drizzle, false)) === null) return false;
  return transaction(db, async (tx) => {
    // Another worker may have planned them.
    const division = await divide(tx, true);
    if (division === null) return false;
    const plan = await planKnown(context, division.request, division.ready);
    await insertWindows(tx, runId, plan.windows);
    // Those that wait for others of these are planned when these are loaded.
    await deferTargets(tx, runId, [...division.waiting, ...plan.deferred]);
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
