import { setTimeout as sleep } from 'node:timers/promises';
import { today } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { databaseError } from '../../load/database/errors.ts';
import { endKeyTrial } from '../../load/state/access-keys.ts';
import type { Permit } from '../../load/state/call-budget.ts';
import { readRunAge } from '../../load/state/runs.ts';
import {
  type Claim,
  type ClaimedWindow,
  claimWindow,
  isOvertaken,
  readWaitingNight,
  unclaimWindow,
} from '../../load/state/windows/claim.ts';
import { skipWindow } from '../../load/state/windows/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { WorkContext } from '../context.ts';
import { type CoveredWindow, dependsOnDays, questionsOf } from './answer-coverage.ts';
import { cutWindow } from './apply-failure.ts';
import type { Breaker } from './breaker.ts';
import {
  decideDuringOutage,
  lostTooManyWorkers,
  NotItsTurn,
  type Outage,
  PROBE_LOOK_MS,
  RateLimited,
  WorkersLost,
} from './failure-policy.ts';
import type { JobQueue, WindowJob, WindowQueue } from './queue.ts';
import { hourStart, permitOf, type SourceClock, turnWait } from './quota.ts';

/** What the work on the windows of one queue needs. */
export interface WorkerContext extends WorkContext {
  /** The queue the jobs come from: long waits are announced there. */
  readonly queue: JobQueue<WindowJob>;
  readonly kind: WindowQueue;
  readonly breaker: Breaker;
  readonly sourceClock: SourceClock;
  /** Ends calls and waits when the worker stops. */
  readonly signal: AbortSignal;
}

/** A window that was claimed, with the permission to make one call. */
export interface ClaimedCall {
  readonly claim: Extract<Claim, { outcome: 'claimed' }>;
  readonly permit: Permit;
}

/**
 * Claims a window once a call may start: not at the turn of the hour, not while the source is down or
 * another worker tries the key, not beyond the hour's budget. Waits of seconds are waited for here;
 * the wait for the next hour is the queue's.
 *
 * @returns null when there is nothing left to do for the window.
 * @throws RateLimited when the hour's budget is spent; NotItsTurn when others are to be asked first; WorkersLost when too many workers have ended with
 *   it; PipelineError when the key is refused, the source is down for too long, Postgres is away, or the
 *   worker is stopping.
 */
export async function claimCall(
  context: WorkerContext,
  { runId, windowId }: WindowJob,
): Promise<ClaimedCall | null> {
  const { config, clock, sourceClock, db, breaker, signal } = context;
  if (context.kind === 'nightly' && (await skipOvertaken(context, windowId))) return null;
  for (;;) {
    const permit = permitOf(config, clock, sourceClock);
    const wait = turnWait(sourceClock.now(), config.EOD_TIMEZONE) || (await outageWait(context, runId));
    if (wait > 0) {
      await pause(wait, signal);
      continue;
    }
    const claim = await claimWindow(db.drizzle, windowId, permit).catch((error) => {
      breaker.abandoned();
      throw databaseError(error);
    });
    const lostWorkers = claim.outcome === 'claimed' ? claim.window.lostWorkers : 0;
    const poisoned = lostTooManyWorkers(lostWorkers);
    const isUsable = claim.outcome === 'claimed' && !poisoned && stillCounts(context, permit);
    if (isUsable && !(await isAnsweredByNow(context, claim.window))) return { claim, permit };
    breaker.abandoned();
    switch (claim.outcome) {
      case 'claimed':
        await unclaimWindow(db.drizzle, windowId).catch((error) => {
          throw databaseError(error);
        });
        if (claim.probe) await endKeyTrial(db.drizzle, permit.keyHash);
        if (poisoned) throw new WorkersLost(lostWorkers);
        if (context.kind === 'nightly' && (await skipOvertaken(context, windowId))) return null;
        // Postgres kept us waiting until the hour turned: the call would count against the next one.
        break;
      case 'gone':
        return null;
      case 'refused':
        throw keyRefusedError(claim.diagnostic);
      case 'spent':
        // Unless the hour turned while Postgres answered: what was spent was the old one.
        if (hourStart(sourceClock.now(), config.EOD_TIMEZONE) === permit.hour) throw new RateLimited();
        break;
      case 'waits':
        throw new NotItsTurn(claim.ahead);
      case 'out_of_reach': {
        const { window, lastDay, diagnostic } = claim;
        if (window.to <= lastDay) throw outOfReachError(lastDay, diagnostic);
        await cutWindow(context, window, lastDay).catch((error) => {
          throw databaseError(error);
        });
        return null;
      }
      case 'probing':
        await pause(PROBE_LOOK_MS, signal);
    }
  }
}

/** Nights pile up while the key is refused: what is known by now, or asked by a later night, is not asked again. */
async function skipOvertaken(context: WorkContext, windowId: number): Promise<boolean> {
  const { db } = context;
  const window = await readWaitingNight(db.drizzle, windowId);
  if (window === null || !(await isKnown(context, { ...window, id: windowId }))) return false;
  return skipWindow(context.db.drizzle, windowId, 'known by now, or asked for by a later night');
}

/** Another night may have been answered between the look at what is known and the claim: from then on none can be. */
async function isAnsweredByNow(context: WorkerContext, window: ClaimedWindow): Promise<boolean> {
  return context.kind === 'nightly' && window.runKind === 'nightly' && isKnown(context, window);
}

async function isKnown(
  { db, calendar, clock, config }: WorkContext,
  window: CoveredWindow & Pick<ClaimedWindow, 'id' | 'operation' | 'exchange'>,
): Promise<boolean> {
  const operation = operationNamed(window.operation);
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const questions = questionsOf(operation, window, sessions, today(clock, config.EOD_TIMEZONE));
  return isOvertaken(db.drizzle, window.id, questions, dependsOnDays(operation, window)).catch((error) => {
    throw databaseError(error);
  });
}

/** Is it still the hour whose budget holds the call, and not its very end? */
function stillCounts({ config, sourceClock }: WorkerContext, permit: Permit): boolean {
  const now = sourceClock.now();
  return hourStart(now, config.EOD_TIMEZONE) === permit.hour && turnWait(now, config.EOD_TIMEZONE) === 0;
}

/**
 * Milliseconds until a call may start, as far as the source's health goes. After 0 a call to a source that is
 * down counts as the one that tries it: its outcome must be told.
 *
 * @throws PipelineError when the source has been down for too long.
 */
async function outageWait(context: WorkerContext, runId: number): Promise<number> {
  const outage = await outageFor(context, runId).catch((error) => {
    throw databaseError(error);
  });
  if (outage === null) return 0;
  const next = decideDuringOutage(outage, context.kind, context.config);
  if (next.act === 'wait') return next.delayMs;
  if (next.act === 'give_up') {
    throw new PipelineError(
      `the source has answered with errors, or not at all, for ${Math.round(outage.downMs / 1000)} s; nothing more is asked of it`,
      { kind: 'network' },
    );
  }
  context.breaker.beginProbe();
  return 0;
}

/** Waits. @throws PipelineError `aborted` where the worker stops meanwhile. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {
    throw new PipelineError('the worker is stopping', { kind: 'aborted' });
  });
}

function keyRefusedError(diagnostic: string): PipelineError {
  return new PipelineError(`the access key was refused: ${diagnostic}`, {
    kind: 'credential',
    diagnostic,
  });
}

function outOfReachError(lastDay: Day, diagnostic: string): PipelineError {
  return new PipelineError(`the source has no data up to ${lastDay}, as it answered before: ${diagnostic}`, {
    kind: 'range_refused',
    diagnostic,
  });
}

/** What the source's outage means to a run; null while the source answers. */
export async function outageFor(context: WorkerContext, runId: number): Promise<Outage | null> {
  if (context.breaker.outage() === null) return null;
  return outageOf(context, await readRunAge(context.db.drizzle, runId));
}

/** The same of a run of this age. Unit: milliseconds. */
export function outageOf({ breaker }: WorkerContext, runAgeMs: number): Outage | null {
  const outage = breaker.outage();
  return outage === null ? null : { ...outage, runAgeMs };
}
