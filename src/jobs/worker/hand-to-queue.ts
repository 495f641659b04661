import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { messageOf } from '../../core/errors.ts';
import type { FailureAction } from '../policy/failure-policy.ts';
import { PREPARED_PRIORITY } from '../queue/call-order.ts';

/** What BullMQ can be instructed to do with a job. */
export type QueueAction = Exclude<FailureAction, { act: 'split' | 'keep_response' }>;

/**
 * Instructs BullMQ what to do with a job. Always throws, because BullMQ is instructed by the class of the error. A rate
 * limit of the queue has to be set before.
 */
export async function handToQueue(
  job: Job,
  token: string | undefined,
  action: QueueAction,
  error: unknown,
): Promise<never> {
  switch (action.act) {
    case 'retry':
    case 'postpone':
      return postponeJob(job, action.delayMs, token);
    case 'await_data':
      await job.changePriority({ priority: PREPARED_PRIORITY });
      return postponeJob(job, action.delayMs, token);
    case 'put_back':
      await job.moveToWait(token);
      throw new WaitingError();
    case 'rate_limit':
      throw Worker.RateLimitError();
    case 'skip':
    case 'end':
      throw new UnrecoverableError(messageOf(error));
  }
}

/** Postpones a job without counting an attempt. Always throws, as BullMQ requires. */
async function postponeJob(job: Job, delayMs: number, token: string | undefined): Promise<never> {
  // The queue on Postgres takes no parts of a millisecond.
  await job.moveToDelayed(Date.now() + Math.ceil(delayMs), token);
  throw new DelayedError();
}
