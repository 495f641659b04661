import type { Job } from 'bullmq';
import type { Logger } from '../../core/log.ts';

// The id of a job says all that is needed to work on it. A queue's server that drops the job's data, as Redis does when
// its memory is full, then loses nothing; and a window has at most one job, because BullMQ adds an id only once.

/** A job only identifies its window: all else is in the database, and no secret gets into the queue. */
export interface WindowJob {
  readonly runId: number;
  readonly windowId: number;
}

/** A tick of a schedule, for which the nightly run of one operation and exchange is planned. */
export interface TickJob {
  readonly operation: string;
  readonly exchange: string;
}

export const windowJobId = ({ runId, windowId }: WindowJob) => `run-${runId}-window-${windowId}`;

/** The id that BullMQ gives the ticks of a schedule, up to the time of the tick. */
export const tickJobPrefix = (scheduleId: string) => `repeat:${scheduleId}:`;

const WINDOW_ID = /^run-(\d+)-window-(\d+)$/;
const TICK_ID = /^repeat:(\w+)-(\w+)(?:-\d+)?:(\d+)$/;

/**
 * Gives a job back the data that the queue's server has dropped, as far as its id says it.
 *
 * @returns false if it says nothing, so that the job cannot be worked on.
 */
function restoreJob(job: Job): boolean {
  const window = WINDOW_ID.exec(job.id ?? '');
  if (window !== null) {
    job.data = { runId: Number(window[1]), windowId: Number(window[2]) };
    return true;
  }
  const tick = TICK_ID.exec(job.id ?? '');
  if (tick === null) return false;
  job.data = { operation: tick[1], exchange: tick[2] };
  job.opts.prevMillis = Number(tick[3]);
  return true;
}

export type Processor<Data> = (job: Job<Data>, token?: string) => Promise<unknown>;

/** Wraps a processor so that jobs whose data is lost have that of their id, or fail for good if it says nothing. */
export function withRestoredData<Data>(
  log: Logger,
  processor: Processor<Data>,
  FinalError: new (message: string) => Error,
): Processor<Data> {
  return async (job, token) => {
    if (Object.keys(job.data ?? {}).length > 0) return processor(job, token);
    if (!restoreJob(job)) {
      log.error({ job: job.id }, 'the queue has lost the data of this job');
      throw new FinalError('the queue has lost the data of this job');
    }
    log.info({ job: job.id }, 'the queue has lost the data of this job; it is taken from the id');
    return processor(job, token);
  };
}
