import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkContext } from '../jobs/context.ts';
import { pauseRun } from '../jobs/runs/runs.ts';
import { quotaStatus, waitsUntil } from '../jobs/runs/status.ts';
import { type RunningWorker, startWorker } from '../jobs/worker/worker.ts';
import { type Progress, type RunReport, reportRun, runProgress } from '../load/state/reports.ts';
import { clockTime } from './clock-time.ts';
import type { Lifecycle } from './lifecycle.ts';
import { plural, say } from './output.ts';
import { progressView } from './progress.ts';

const LOOK_EVERY_MS = 250;

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
    ended = await follow(life, context, runId, (progress, pause) => view.update(progress, pause));
  } catch (error) {
    if (!life.signal.aborted) throw error;
  } finally {
    view.end();
    if (!ended && life.signal.aborted) await pauseRun(context, runId);
    await worker?.stop();
  }
  const report = await reportRun(context.db.drizzle, runId);
  return { report, interrupted: !ended };
}

/** @returns false when a signal came first. @throws PipelineError when Postgres stays away. */
async function follow(
  life: Lifecycle,
  context: WorkContext,
  runId: number,
  show: (progress: Progress, pause: string | null) => void,
): Promise<boolean> {
  while (!life.signal.aborted) {
    const progress = await runProgress(context.db.drizzle, runId);
    const until = waitsUntil(await quotaStatus(context), progress.kind);
    show(progress, until === null ? null : clockTime(until, context.config.EOD_TIMEZONE));
    if (progress.state !== 'running') return true;
    await sleep(LOOK_EVERY_MS, undefined, { signal: life.signal }).catch(() => undefined);
  }
  return false;
}

/** Tells how to go on with what a signal has stopped. */
export function sayHowToResume({ runId, windows }: RunReport): void {
  say(`stopped: run ${runId} has ${plural(windows.open, 'window')} left; go on with: eod resume ${runId}`);
}
