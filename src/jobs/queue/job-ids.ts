import type { Job } from 'bullmq';
import type { Logger } from '../../core/log.ts';

// The id of a job says all that is needed to work on it. A queue's server that drops the job's data, as Redis does when
// its memory is full, then loses nothing; and a window has at most one job, because BullMQ adds an id only once.

/** Every job has the id of its database; workers of another database refuse it. */
export interface DatabaseJob {
  readonly database: string;
}

/** A job only identifies its window: all else is in the database, and no secret gets into the queue. */
export interface WindowJob extends DatabaseJob {
  readonly runId: number;
  readonly windowId: number;
}

/** A tick of a schedule, for which the nightly run of one operation and exchange is planned. */
export interface TickJob extends DatabaseJob {
  readonly operation: string;
  readonly exchange: string;
}

export const windowJobId = ({ runId, windowId }: Omit<WindowJob, 'database'>) =>
  `run-${runId}-window-${windowId}`;

/** The id that BullMQ gives the ticks of a schedule, up to the time of the tick. */
export const tickJobPrefix = (scheduleId: string) => `repeat:${scheduleId}:`;

const WINDOW_ID = /^run-(\d+)-window-(\d+)$/;
const TICK_ID = /^repeat:(\w+)-(\w+)(?:-\d+)?:(\d+)$/;

/**
 * Gives a job back the data that the queue's server has dropped, as far as its id says it.
 *
 * @returns false if it says nothing, so that the job cannot be worked on.
 */
function restoreJob(job: Job, databaseId: string): boolean {
  const window = WINDOW_ID.exec(job.id ?? '');
  if (window !== null) {
    job.data = { database: databaseId, runId: Number(window[1]), windowId: Number(window[2]) };
    return true;
  }
  const tick = TICK_ID.exec(job.id ?? '');
  if (tick === null) return false;
  job.data = { database: databaseId, operation: tick[1], exchange: tick[2] };
  job.opts.prevMillis = Number(tick[3]);
  return true;
}

export type Processor<Data> = (job: Job<Data>, token?: string) => Promise<unknown>;

/** Wraps a processor so that jobs of another database, and those that nothing is known about, fail for good. */
export function onlyOwnJobs<Data extends DatabaseJob>(
  databaseId: string,
  log: Logger,
  processor: Processor<Data>,
  FinalError: new (message: string) => Error,
): Processor<Data> {
  return async (job, token) => {
    // The queue is our own, so a job without data is too.
    const isLost = job.data?.database === undefined;
    if (isLost && !restoreJob(job, databaseId)) {
      log.error({ job: job.id }, 'the queue has lost the data of this job');
      throw new FinalError('the queue has lost the data of this job');
    }
    if (isLost) log.info({ job: job.id }, 'the queue has lost the data of this job; it is taken from the id');
    if (job.data.database === databaseId) return processor(job, token);
    log.error(
      { job: job.id, ofDatabase: job.data.database, databaseId },
      'refused a job of another database',
    );
    throw new FinalError(`a job of database ${job.data.database}; this is ${databaseId}`);
  };
}
