import type { Queue } from 'bullmq';
import { firstItem } from '../../core/iterables.ts';
import { countOpenWindows, listOpenWindows } from '../../state/windows/read-windows.ts';
import type { QueueContext } from '../context.ts';
import { computePriority } from './call-order.ts';
import { type WindowJob, windowJobId } from './job-ids.ts';
import { chooseQueue, countQueued, isQueued, queuedIds, WINDOW_QUEUES } from './queue.ts';

const BATCH = 1_000;

/** A window that has not ended, with what the queue needs to know about it. */
type OpenWindow = Awaited<ReturnType<typeof listOpenWindows>>[number];

/**
 * Adds a job for every open window of these runs. May be called any number of times: the job id is made from the
 * window's, and BullMQ does not add a job whose id it has.
 */
export async function enqueueOpenWindows(context: QueueContext, runIds: readonly number[]): Promise<void> {
  for await (const windows of openWindowsOf(context, runIds)) await addJobs(context, windows);
}

/** The open windows of these runs, in parts that are all of one queue. */
async function* openWindowsOf({ db }: Pick<QueueContext, 'db'>, runIds: readonly number[]) {
  for (const runId of runIds) {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const open: readonly OpenWindow[] = await listOpenWindows(db.drizzle, runId, { after, limit: BATCH });
      if (open.length > 0) yield open;
      after = open.length < BATCH ? undefined : open.at(-1)?.id;
    }
  }
}

/** Adds jobs for windows of one queue. */
async function addJobs(context: QueueContext, windows: readonly OpenWindow[]): Promise<void> {
  const [first] = windows;
  if (first === undefined) return;
  await context.queues.windows[chooseQueue(first.kind)].addBulk(windows.map(windowJob));
}

/**
 * True if a queue has fewer jobs than there are open windows. That costs two counts. Jobs of windows that have ended
 * may make up for lost ones, but only until they are taken.
 */
export async function lacksJobs({ db, queues }: Pick<QueueContext, 'db' | 'queues'>): Promise<boolean> {
  const open = { nightly: 0, backfill: 0 };
  for (const count of await countOpenWindows(db.drizzle)) open[chooseQueue(count.kind)] += count.open;
  for (const kind of WINDOW_QUEUES) {
    if (open[kind] > 0 && (await countQueued(queues.windows[kind])) < open[kind]) return true;
  }
  return false;
}

/**
 * Enqueues the open windows of these runs that no worker will be given: the queue has no job for them that waits or is
 * worked on, whatever else it still has of one.
 *
 * @returns how many there were.
 */
export async function enqueueLostWindows(context: QueueContext, runIds: readonly number[]): Promise<number> {
  const queues = context.queues.windows;
  // A window that is enqueued after this is taken as lost, and its job is added once more, which changes nothing.
  const queued = {
    nightly: await queuedIds(queues.nightly),
    backfill: await queuedIds(queues.backfill),
  };
  let count = 0;
  for await (const windows of openWindowsOf(context, runIds)) {
    const kind = chooseQueue(firstItem(windows).kind);
    const lost = windows.filter((window) => !queued[kind].has(buildJobId(window)));
    await Promise.all(lost.map((window) => removeEndedJob(queues[kind], buildJobId(window))));
    await addJobs(context, lost);
    count += lost.length;
  }
  return count;
}

/**
 * Removes what is left of a job that has ended: it keeps its id, so that BullMQ would not add it. One that was added, or
 * moved from one state to another, while the queue was read is not lost, and stays: BullMQ on Postgres may remove a job that
 * a worker takes at this moment, and its window would then be given to a second worker.
 */
async function removeEndedJob(queue: Queue<WindowJob>, jobId: string): Promise<void> {
  const job = await queue.getJob(jobId);
  if (job !== undefined && !isQueued(await job.getState())) await queue.remove(jobId);
}

/**
 * Enqueues a window again whose job has just been removed, if its run was resumed before: then the queue still had the
 * job, and did not add another one. Does not throw: what is missed is found within half a minute.
 */
export async function enqueueReopened(context: QueueContext, job: WindowJob): Promise<void> {
  try {
    const windows = await listOpenWindows(context.db.drizzle, job.runId, {
      after: job.windowId - 1,
      limit: 1,
    });
    await addJobs(
      context,
      windows.filter(({ id }) => id === job.windowId),
    );
  } catch (error) {
    context.log.debug({ ...job, err: error }, 'could not look whether the window was opened again');
  }
}

/**
 * The same for a run that has just been written. Does not throw if the queue cannot be reached: workers will enqueue
 * the windows (`requeueLostWindows`).
 */
export async function enqueueRun(context: QueueContext, runId: number): Promise<void> {
  try {
    await enqueueOpenWindows(context, [runId]);
  } catch (error) {
    context.log.warn({ runId, err: error }, 'could not enqueue the run; workers will within half a minute');
  }
}

const buildJobId = ({ runId, id }: OpenWindow) => windowJobId({ runId, windowId: id });

function windowJob(window: OpenWindow) {
  return {
    name: 'window',
    data: { runId: window.runId, windowId: window.id },
    opts: {
      jobId: buildJobId(window),
      // Attempts are counted with the window and limited by the failure policy.
      attempts: 1_000_000,
      backoff: { type: 'eod' },
      priority: computePriority(window),
      // While a finished job is kept, a resumed run could not add a job with the same id.
      removeOnComplete: true,
      removeOnFail: true,
    },
  };
}

/** Lets workers look for calls again at once. Does not throw: a rate limit ends within a minute anyway. */
export async function liftRateLimits({ queues, log }: QueueContext): Promise<void> {
  await Promise.all(WINDOW_QUEUES.map((kind) => queues.windows[kind].removeRateLimitKey())).catch((error) =>
    log.warn({ err: error }, 'could not lift the rate limit of the queue; it ends within a minute'),
  );
}
