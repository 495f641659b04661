import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { Clock } from '../core/clock.ts';
import { zoneOffsetSeconds } from '../core/days.ts';
import { messageOf } from '../core/errors.ts';
import type { JobQueue, WindowJob } from './queue.ts';
import { untilNextHour, type Verdict } from './verdict.ts';

/** A little into the new hour, so that the source's clock has turned too. */
const HOUR_MARGIN_MS = 2_000;

/**
 * The one place where our verdicts become BullMQ's words. Always throws: the error tells BullMQ
 * what to do with the job.
 */
export async function hand(
  verdict: Verdict,
  error: unknown,
  job: Job<WindowJob>,
  token: string | undefined,
  queue: JobQueue<WindowJob>,
  when: { readonly clock: Clock; readonly timeZone: string },
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
    case 'next_hour': {
      const now = when.clock.now();
      const offset = zoneOffsetSeconds(when.timeZone, Math.floor(now / 1000));
      await queue.rateLimit(untilNextHour(now, offset) + HOUR_MARGIN_MS);
      throw Worker.RateLimitError();
    }
    case 'end':
      throw new UnrecoverableError(messageOf(error));
  }
}
