import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { messageOf } from '../../core/errors.ts';
import type { JobQueue, WindowJob } from './queue.ts';
import type { Verdict } from './verdict.ts';

/**
 * The one place where our verdicts become BullMQ's words. Always throws: the error tells BullMQ
 * what to do with the job.
 */
export async function hand(
  verdict: Exclude<Verdict, { act: 'split' }>,
  error: unknown,
  job: Job<WindowJob>,
  token: string | undefined,
  queue: JobQueue<WindowJob>,
): Promise<never> {
  switch (verdict.act) {
    case 'retry':
      throw error;
    case 'postpone':
      await job.moveToDelayed(Date.now() + verdict.delayMs, token);
      throw new DelayedError();
    case 'put_back':
      await job.moveToWait(token);
      throw new WaitingError();
    case 'hold':
      await queue.rateLimit(Math.max(1, Math.ceil(verdict.delayMs)));
      throw Worker.RateLimitError();
    case 'end':
      throw new UnrecoverableError(messageOf(error));
  }
}
