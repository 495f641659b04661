import { setTimeout as sleep } from 'node:timers/promises';
import type { Queue } from 'bullmq';
import { type Clock, followDatabase } from '../../core/clock.ts';
import { daysBetween } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { CallLimit } from '../../state/source/call-budget.ts';
import { type ClaimedWindow, claimWindow, unclaimWindow } from '../../state/windows/claim.ts';
import { skipWindow } from '../../state/windows/windows.ts';
import type { WorkContext } from '../context.ts';
import {
  type FailureAction,
  MAX_LOST_WORKERS,
  OUTAGE_RECHECK_MS,
  RECHECK_MS,
  waitForCallsMs,
} from '../policy/failure-policy.ts';
import { computeCallLimit, fullHourWait, hourStart, untilNextHour } from '../policy/quota.ts';
import type { WindowJob, WindowQueue } from '../queue/queue.ts';
import { isKnownByNow } from './known-by-now.ts';
import type { Storage } from './storage.ts';

/** The context of a worker on one queue. */
export interface WorkerContext extends WorkContext {
  /** The queue of the jobs; rate limits are set there. */
  readonly queue: Queue<WindowJob>;
  readonly kind: WindowQueue;
  readonly storage: Storage;
  /** The clock by which the source counts hours. */
  readonly sourceClock: Clock;
  /** Aborts calls and waits when the worker stops. */
  readonly signal: AbortSignal;
}

/** A claimed window, with the permission to make one call. */
export interface ClaimedCall {
  readonly window: ClaimedWindow;
  readonly callLimit: CallLimit;
}

/** What became of a claim. */
type ClaimResult =
  | ({ readonly outcome: 'claimed' } & ClaimedCall)
  /** Nothing is left to do for the window. */
  | { readonly outcome: 'done' }
  /** Another window makes the same request; or the source is down or the hour's budget used up: then the queue waits. */
  | { readonly outcome: 'wait'; readonly action: WaitAction };

type WaitAction = Extract<FailureAction, { act: 'postpone' | 'rate_limit' }>;

const waitInQueue = (delayMs: number): ClaimResult => ({
  outcome: 'wait',
  action: { act: 'rate_limit', delayMs, isHourClosed: false },
});

/**
 * Claims a window as soon as a call may start: not around the full hour, while responses wait to be stored, within half a
 * minute of another call while the source is down, or beyond the hour's budget. Short waits happen here; for the next hour
 * and for a source that is down, the queue waits.
 *
 * @throws PipelineError if the window has lost too many workers, Postgres cannot be reached, or the worker is stopping.
 */
export async function claimCall(context: WorkerContext, { windowId }: WindowJob): Promise<ClaimResult> {
  const { config, clock, sourceClock, db, storage, signal } = context;
  for (;;) {
    if (await storage.isRefusing()) {
      await pause(RECHECK_MS, signal);
      continue;
    }
    const callLimit = computeCallLimit(config, clock, sourceClock);
    const wait = fullHourWait(sourceClock.now(), config.EOD_TIMEZONE);
    if (wait > 0) {
      await pause(wait, signal);
      continue;
    }
    const claim = await claimWindow(db.drizzle, windowId, callLimit);
    if (claim.outcome === 'claimed') {
      const { window } = claim;
      // The hour of the claim was that of this machine's clock, which may have leapt: then the call is given back below.
      followDatabase(clock, window.claimedAt);
      const lostTooMany = window.lostWorkers > MAX_LOST_WORKERS;
      // After the claim, which waits for a window with the same request until its response is stored.
      const isKnown = window.mayBeKnown && (await isKnownByNow(context, window));
      if (!lostTooMany && !isKnown && isLimitCurrent(context, callLimit)) return { ...claim, callLimit };
      await unclaimWindow(db.drizzle, window, callLimit);
      if (lostTooMany) throw workersLostError(window.lostWorkers);
      if (isKnown) {
        await skipWindow(db.drizzle, windowId, 'covered by now, or requested by a later night');
        return { outcome: 'done' };
      }
      // The claim took until the end of the hour, or the clock has leapt: the call would count against another hour.
      continue;
    }
    switch (claim.outcome) {
      case 'gone':
        return { outcome: 'done' };
      case 'down':
        return waitInQueue(OUTAGE_RECHECK_MS);
      case 'spent':
        // Unless a new hour has begun since: then the budget of the old one is used up.
        if (hourStart(sourceClock.now(), config.EOD_TIMEZONE) !== callLimit.hour) break;
        return waitInQueue(waitForCallsMs(hourLeft(context)));
      case 'waits':
        return { outcome: 'wait', action: { act: 'postpone', delayMs: RECHECK_MS } };
    }
  }
}

/** True if it is still the hour from whose budget the call was taken, and not its very end. */
function isLimitCurrent({ config, sourceClock }: WorkerContext, callLimit: CallLimit): boolean {
  const now = sourceClock.now();
  return (
    hourStart(now, config.EOD_TIMEZONE) === callLimit.hour && fullHourWait(now, config.EOD_TIMEZONE) === 0
  );
}

/** Waits. @throws PipelineError `aborted` if the worker stops meanwhile. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {
    throw new PipelineError('the worker is stopping', { kind: 'aborted' });
  });
}

/** Milliseconds until calls may start in the next clock hour. */
export const hourLeft = ({ sourceClock, config }: WorkerContext): number =>
  untilNextHour(sourceClock.now(), config.EOD_TIMEZONE);

/** The window may be what ends them. */
const workersLostError = (times: number) =>
  new PipelineError(`${times} workers ended while they worked on this window`, { kind: 'defect' });

/** The number of days of a window if it can be split, otherwise 1: only windows of ranges can. */
export function splittableDays({ operation, from, to }: ClaimedWindow): number {
  return operationNamed(operation).windows.per === 'range' ? daysBetween(from, to) + 1 : 1;
}
