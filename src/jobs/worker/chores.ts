import { followDatabase } from '../../core/clock.ts';
import { DAY_MS } from '../../core/days.ts';
import { readServerTime } from '../../postgres/inspect.ts';
import { trySessionLock } from '../../postgres/session-lock.ts';
import { listRunningRuns } from '../../state/runs/runs.ts';
import { markWorkerSeen, workerName } from '../../state/workers.ts';
import type { QueueContext } from '../context.ts';
import { updateDerived } from '../events/update-derived.ts';
import { enqueueLostWindows, lacksJobs } from '../queue/enqueue.ts';
import { learnTradingDays } from '../responses/sync-sessions.ts';
import { advanceRun } from '../runs/advance.ts';
import { followUpRuns } from '../runs/finish.ts';
import { pruneRuns } from '../runs/prune-runs.ts';

/**
 * Does what processes left undone when they ended: enqueues open windows that have no job (the queue may also have been
 * lost, or any part of it), ends runs without open windows, and makes the checks and alerts that follow the end of a run.
 *
 * @param isThorough whether windows and jobs are compared one by one even if the queue has as many jobs as windows are
 *   open. For 20,000 windows that takes more than a second.
 */
export async function requeueLostWindows(context: QueueContext, isThorough = true): Promise<void> {
  await followUpRuns(context);
  const runs = await listRunningRuns(context.db.drizzle);
  if (runs.length === 0) return;
  const mayBeLost = isThorough || (await lacksJobs(context));
  const windows = mayBeLost ? await enqueueLostWindows(context, runs) : 0;
  if (windows > 0) context.log.info({ windows }, 'enqueued windows for which the queue had no job');
  for (const runId of runs) await advanceRun(context, runId);
}

/** What a worker does from time to time besides its windows. */
interface Chore {
  readonly everyMs: number;
  /** How soon it is tried again after an error, and what is logged then. */
  readonly retryMs: number;
  readonly problem: string;
  work(context: QueueContext): Promise<unknown>;
}

const CHORES: readonly Chore[] = [
  {
    everyMs: 30_000,
    retryMs: 2_000,
    problem: 'could not look for windows that the queue has lost',
    async work(context) {
      followDatabase(context.clock, await readServerTime(context.db.pool));
      await markWorkerSeen(context.db.drizzle, workerName());
      await requeueLostWindows(context, false);
      // Those that other workers' bhav copies have shown.
      await learnTradingDays(context);
    },
  },
  {
    everyMs: 600_000,
    retryMs: 2_000,
    problem: 'could not compare the windows with the jobs of the queue',
    work: (context) => requeueLostWindows(context),
  },
  {
    everyMs: 60_000,
    retryMs: 60_000,
    problem: 'could not bring names, corporate events and price factors up to date; tried again in a minute',
    work: deriveDuringRuns,
  },
  {
    everyMs: DAY_MS,
    retryMs: DAY_MS,
    problem: 'could not delete what old runs left; tried again in a day',
    work: prune,
  },
];

/** Brings what is derived up to date while a run lasts, whose end does so as well: of several processes, one. */
async function deriveDuringRuns(context: QueueContext): Promise<void> {
  if ((await listRunningRuns(context.db.drizzle)).length > 0)
    await updateDerived(context, { isAwaited: false });
}

/** Deletes what old runs left: of several processes that do so at the same time, one. */
async function prune(context: QueueContext): Promise<void> {
  const lock = await trySessionLock(context.db, 'eod:prune');
  if (lock === null) return;
  const pruned = await pruneRuns(context).finally(() => lock.release());
  if (Object.values(pruned).some((rows) => rows > 0)) context.log.info(pruned, 'deleted what old runs left');
}

/**
 * Creates a function that does the chores that are due, in their order, and never throws. At first all are; each is due
 * again when its interval has passed since its end.
 *
 * @param now the present in milliseconds.
 * @returns the function, which returns when the next chore is due.
 */
export function createChores(
  context: QueueContext,
  chores = CHORES,
  now = () => performance.now(),
): () => Promise<number> {
  const due = chores.map(() => Number.NEGATIVE_INFINITY);
  return async () => {
    for (const [at, { everyMs, retryMs, problem, work }] of chores.entries()) {
      if (now() < (due[at] as number)) continue;
      let waitMs = everyMs;
      await work(context).catch((err) => {
        context.log.warn({ err }, problem);
        waitMs = retryMs;
      });
      due[at] = now() + waitMs;
    }
    return due.reduce((first, next) => Math.min(first, next));
  };
}

/** Does the chores of a worker: all now and as soon as the queue's server is back, then each whenever it is due. */
export async function startChores(context: QueueContext): Promise<{ stop(): void }> {
  let doChores = createChores(context);
  let timer: NodeJS.Timeout | undefined;
  let isBusy = false;
  let isStopped = false;
  const run = async () => {
    if (isBusy || isStopped) return;
    isBusy = true;
    clearTimeout(timer);
    const current = doChores;
    const next = await current();
    isBusy = false;
    if (isStopped) return;
    // The queue's server may have been back meanwhile.
    const waitMs = doChores === current ? Math.max(0, next - performance.now()) : 0;
    timer = setTimeout(() => void run(), waitMs);
    timer.unref();
  };
  const stopListening = context.queues.onReconnect(() => {
    doChores = createChores(context);
    void run();
  });
  await run();
  return {
    stop() {
      isStopped = true;
      stopListening();
      clearTimeout(timer);
    },
  };
}
