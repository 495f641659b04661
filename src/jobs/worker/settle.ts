import type { Job } from 'bullmq';
import { databaseError } from '../../load/database/errors.ts';
import { transaction } from '../../load/database/transaction.ts';
import { markKeyRefused } from '../../load/state/access-keys.ts';
import { closeHour, type Permit } from '../../load/state/call-budget.ts';
import type { ClaimedWindow } from '../../load/state/claim.ts';
import { endWindows, releaseWindow } from '../../load/state/windows.ts';
import { keyAlert, raiseAlerts } from '../alerts/alerts.ts';
import type { WorkContext } from '../context.ts';
import { advanceRun } from '../runs/advance.ts';
import { giveUp } from './give-up.ts';
import type { WindowJob } from './queue.ts';
import { splitAndEnqueue } from './split.ts';
import { Hold, troubleOf, type Verdict } from './verdict.ts';

/** A window that did not load, and what was decided about it. */
export interface Case {
  readonly error: unknown;
  readonly verdict: Verdict;
  readonly window: ClaimedWindow | null;
  readonly permit: Permit;
  readonly job: Job<WindowJob>;
}

/** Stores what the verdict means for this window and those it speaks for. */
export async function settle(
  context: WorkContext,
  { error, verdict, window, permit, job }: Case,
): Promise<void> {
  if (error instanceof Hold) return;
  const { runId, windowId } = job.data;
  const { log, db } = context;
  const trouble = troubleOf(error);
  log.warn({ runId, windowId, err: error, verdict }, 'window did not load');
  try {
    if (verdict.act === 'end') {
      if (verdict.scope === 'key') await raiseKeyAlert(context, permit, error);
      const runs = await giveUp(context, window ?? { id: windowId, runId }, verdict, trouble);
      for (const run of runs) await advanceRun(context, run);
    } else if (verdict.act === 'split' && window !== null) {
      await splitAndEnqueue(context, window, verdict, permit.keyHash);
    } else {
      if (verdict.act === 'hold') await closeHour(db.drizzle, permit, trouble.diagnostic ?? trouble.error);
      const putBack = verdict.act === 'put_back';
      const anew = putBack || verdict.act === 'hold';
      await releaseWindow(db.drizzle, windowId, putBack ? null : trouble, anew);
    }
  } catch (failure) {
    // Postgres is away: the window stays as it is, and the job comes back for it.
    const problem = databaseError(failure);
    if (problem.retryable) {
      log.warn({ windowId, err: problem }, 'could not keep what went wrong');
      return;
    }
    // What cannot be kept now never can: left open, the window would be asked for again and again.
    log.error({ windowId, err: problem }, 'could not keep what went wrong; the window ends as failed');
    await transaction(db, (tx) => endWindows(tx, { runId, windowId }, 'failed', trouble));
    await advanceRun(context, runId);
  }
}

/** One clear alert, from whichever worker heard it first; the queues stop until somebody acts. */
async function raiseKeyAlert(context: WorkContext, permit: Permit, error: unknown): Promise<void> {
  const trouble = troubleOf(error);
  const first = await markKeyRefused(context.db.drizzle, permit, trouble.diagnostic ?? trouble.error);
  if (!first) return;
  await context.queues.pause();
  await raiseAlerts(context, [keyAlert(permit.keyHash, trouble.diagnostic ?? trouble.error)]);
}
