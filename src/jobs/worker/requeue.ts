import { followDatabase } from '../../core/clock.ts';
import { DAY_MS } from '../../core/days.ts';
import { readServerTime } from '../../postgres/inspect.ts';
import { trySessionLock } from '../../postgres/session-lock.ts';
import { runningRuns } from '../../state/runs/runs.ts';
import { markWorkerSeen, workerName } from '../../state/workers.ts';
import type { Context, QueueContext } from '../context.ts';
import { updateDerived } from '../events/update-derived.ts';
import { enqueueLostWindows, lacksJobs } from '../queue/enqueue.ts';
import { learnTradingDays } from '../responses/sync-sessions.ts';
import { advanceRun } from '../runs/advance.ts';
import { followUpRuns } from '../runs/finish.ts';
import { pruneRuns } from '../runs/prune-runs.ts';

/** How often a worker looks for windows that the queue has lost. */
const EVERY_MS = 30_000;

/** Every so many times it compares windows and jobs one by one, whatever their numbers are: every ten minutes. */
const THOROUGH_EVERY = 20;

/** How soon it tries again after an error. */
const RETRY_MS = 2_000;

/**
 * Does what processes left undone when they ended: enqueues open windows that have no job (the queue may also have been
 * lost, or any part of it), ends runs without open windows, and makes the checks and alerts that follow the end of a run.
 *
 * @param isThorough whether windows and jobs are compared one by one even if the queue has as many jobs as windows are
 *   open. For 20,000 windows that takes more than a second.
 */
export async function requeueLostWindows(context: QueueContext, isThorough = true): Promise<void> {
  await followUpRuns(context);
  const runs = await runningRuns(context.db.drizzle);
  if (runs.length === 0) return;
  const mayBeLost = isThorough || (await lacksJobs(context));
  const windows = mayBeLost ? await enqueueLostWindows(context, runs) : 0;
  if (windows > 0) context.log.info({ windows }, 'enqueued windows for which the queue had no job');
  for (const runId of runs) await advanceRun(context, runId);
}

/**
 * Follows the clock of Postgres, records that this worker is alive, requeues lost windows, brings what is derived up to
 * date and learns of trading days that others have observed: now, every EVERY_MS, and as soon as the queue's server is
 * back. Errors are logged, and it is tried again soon.
 */
export async function startRequeueing(context: QueueContext): Promise<{ stop(): void }> {
  let timer: NodeJS.Timeout | undefined;
  const stopping = new AbortController();
  let busy = false;
  let wanted = false;
  let untilThorough = 0;
  const prune = createPruning(context);
  const derive = createDeriving(context);

  async function run(): Promise<void> {
    wanted = busy;
    if (busy || stopping.signal.aborted) return;
    busy = true;
    clearTimeout(timer);
    let next = EVERY_MS;
    try {
      followDatabase(context.clock, await readServerTime(context.db.pool));
      await markWorkerSeen(context.db.drizzle, workerName());
      await requeueLostWindows(context, untilThorough === 0);
      untilThorough = (untilThorough || THOROUGH_EVERY) - 1;
      await derive();
      // Those that other workers' bhav copies have shown.
      await learnTradingDays(context);
      await prune();
    } catch (error) {
      context.log.warn({ err: error }, 'could not look for windows that the queue has lost');
      next = RETRY_MS;
    }
    busy = false;
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => void run(), wanted ? 0 : next);
    timer.unref();
  }

  const stopListening = context.queues.onReconnect(() => {
    untilThorough = 0;
    void run();
  });
  await run();
  return {
    stop() {
      stopping.abort();
      stopListening();
      clearTimeout(timer);
    },
  };
}

/** While a run lasts, what it has loaded is derived from this often; its end does so as well. */
const DERIVE_MS = 60_000;

/** Brings what is derived up to date now and then while a run lasts: of several processes, one. Does not throw. */
function createDeriving(context: Context): () => Promise<void> {
  let next = 0;
  return async () => {
    if (performance.now() < next) return;
    next = performance.now() + DERIVE_MS;
    try {
      if ((await runningRuns(context.db.drizzle)).length > 0)
        await updateDerived(context, { isAwaited: false });
    } catch (err) {
      context.log.warn(
        { err },
        'could not bring names, corporate events and price factors up to date; tried again in a minute',
      );
    }
  };
}

/** A running service prunes this often. */
const PRUNE_MS = DAY_MS;

/** Prunes now and then: of several processes that do so at the same time, one. Does not throw. */
export function createPruning(context: Context): () => Promise<void> {
  let next = 0;
  return async () => {
    const now = context.clock.now();
    if (now < next) return;
    next = now + PRUNE_MS;
    try {
      const lock = await trySessionLock(context.db, 'eod:prune');
      if (lock === null) return;
      const pruned = await pruneRuns(context).finally(() => lock.release());
      if (Object.values(pruned).some((rows) => rows > 0)) {
        context.log.info(pruned, 'deleted what old runs left');
      }
    } catch (err) {
      context.log.warn({ err }, 'could not delete what old runs left; tried again in a day');
    }
  };
}
