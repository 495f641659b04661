import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkContext } from '../jobs/context.ts';
import { type Progress, runProgress } from '../jobs/progress.ts';
import { type RunReport, reportRun } from '../jobs/report.ts';
import { pauseRun } from '../jobs/runs.ts';
import { type RunningWorker, startWorker } from '../jobs/worker.ts';
import { databaseError } from '../load/failures.ts';
import type { Lifecycle } from './lifecycle.ts';
import { plural, say } from './output.ts';
import { progressView } from './progress.ts';

const LOOK_EVERY_MS = 250;

/** Postgres may be away this long (a restart) before following a run is given up. */
const DATABASE_AWAY_MS = 60_000;

export interface Ending {
  readonly report: RunReport;
  /** Stopped by a signal before its end. */
  readonly interrupted: boolean;
}

/**
 * Works on a run as one more worker and shows its progress, until it has ended or somebody asks us
 * to stop: then the run is paused, and windows in flight finish or roll back.
 */
export async function workOn(life: Lifecycle, context: WorkContext, runId: number): Promise<Ending> {
  const view = progressView(runId);
  let worker: RunningWorker | undefined;
  let ended = false;
  try {
    worker = await life.open(
      () => startWorker(context),
      (opened) => opened.stop(),
    );
    ended = await follow(life, context, runId, (progress) => view.update(progress));
  } catch (error) {
    if (!life.signal.aborted) throw error;
  } finally {
    view.end();
    if (!ended && life.signal.aborted) await pauseRun(context, runId);
    await worker?.stop();
  }
  return { report: await reportRun(context.db.pool, runId), interrupted: !ended };
}

/** @returns false when a signal came first. */
async function follow(
  life: Lifecycle,
  context: WorkContext,
  runId: number,
  show: (progress: Progress) => void,
): Promise<boolean> {
  let seenAt = Date.now();
  while (!life.signal.aborted) {
    try {
      const progress = await runProgress(context.db.pool, runId);
      seenAt = Date.now();
      show(progress);
      if (progress.state !== 'running') return true;
    } catch (error) {
      const problem = databaseError(error);
      if (!problem.retryable || Date.now() - seenAt > DATABASE_AWAY_MS) throw problem;
      context.log.warn({ err: problem }, 'cannot see how far the run is');
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal: life.signal }).catch(() => undefined);
  }
  return false;
}

/** Tells how to go on with what a signal has stopped. */
export function sayHowToResume({ runId, windows }: RunReport): void {
  say(`stopped: run ${runId} has ${plural(windows.open, 'window')} left; go on with: eod resume ${runId}`);
}
