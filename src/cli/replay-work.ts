import { setTimeout as sleep } from 'node:timers/promises';
import { PipelineError } from '../core/errors.ts';
import type { Context } from '../jobs/context.ts';
import { workReplay } from '../jobs/replay/run.ts';
import { pauseRun } from '../jobs/runs/runs.ts';
import { reportRun, runProgress } from '../load/state/reports.ts';
import type { Cli } from './command.ts';
import { progressView } from './progress.ts';
import { type Ending, sayHowToResume } from './work.ts';

const LOOK_EVERY_MS = 250;

/**
 * Works on a replay and shows how far it is, until its end or until somebody asks us to stop. Where
 * Postgres goes away meanwhile, what is left is gone on with once it is back.
 */
export async function replayUntilEnd({ life }: Cli, context: Context, runId: number): Promise<Ending> {
  const view = progressView(runId);
  const db = context.db.drizzle;
  const done = new AbortController();
  const work = workReplay(context, runId, life.signal).finally(() => done.abort());
  // Heard below; an error nobody listens to yet would end the process before the run is paused.
  work.catch(() => undefined);
  const look = async () => {
    // The work itself says what goes wrong; how far it is can be seen another time.
    const progress = await runProgress(context.db.withoutRetry.drizzle, runId).catch(() => null);
    if (progress !== null) view.update(progress);
  };
  try {
    while (!done.signal.aborted) {
      await look();
      await sleep(LOOK_EVERY_MS, undefined, { signal: done.signal }).catch(() => undefined);
    }
    await look();
  } finally {
    view.end();
    // What goes wrong stops the work; the run stays open for a resume.
    await work.catch(async (error) => {
      // A run in the hands of another process is not ours to pause. While Postgres is away it cannot be
      // done, and need not be: a resume takes up a running run too.
      if (!isUsage(error)) await pauseRun(context, runId).catch(() => undefined);
      throw error;
    });
  }
  const { state } = await runProgress(db, runId);
  const interrupted = life.signal.aborted && state === 'running';
  if (interrupted) await pauseRun(context, runId);
  const report = await reportRun(db, runId);
  if (interrupted) sayHowToResume(report);
  return { report, interrupted };
}

const isUsage = (error: unknown) => error instanceof PipelineError && error.kind === 'usage';
