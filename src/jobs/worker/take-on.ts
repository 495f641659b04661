import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config.ts';
import { PipelineError } from '../../core/errors.ts';
import { databaseError } from '../../load/database/errors.ts';
import { endKeyTrial } from '../../load/state/access-keys.ts';
import type { Permit } from '../../load/state/call-budget.ts';
import { type Claim, claimWindow, unclaimWindow } from '../../load/state/claim.ts';
import type { WorkContext } from '../context.ts';
import type { Breaker } from './breaker.ts';
import type { JobQueue, WindowJob, WindowQueue } from './queue.ts';
import { hourStart, permitOf, turnWait, untilNextHour } from './quota.ts';
import { Hold, WorkersLost } from './verdict.ts';

/** What a worker brings along for its windows. */
export interface Bench {
  /** The queue the job came from: long waits are announced there. */
  readonly queue: JobQueue<WindowJob>;
  readonly kind: WindowQueue;
  readonly breaker: Breaker;
  readonly signal: AbortSignal;
}

/** A window taken on, with the permission to make one call. */
export interface Taken {
  readonly claim: Extract<Claim, { outcome: 'claimed' }>;
  readonly permit: Permit;
}

/** Others look again after this long while one worker tries an unproven key. */
const PROBE_WAIT_MS = 200;

/** A window that has lost more workers than this ends as failed: something about it may be what ends them. */
const MAX_LOST_WORKERS = 5;

/** A backfill, where somebody is watching, gives up on a silent source this much sooner than a night. */
const BACKFILL_IMPATIENCE = 60;

/**
 * Takes a window on once a call may start: not at the turn of the hour, not while the source is
 * down or another worker tries the key, not beyond the hour's budget. Waits of seconds are waited
 * for here, with the job in hand; the wait for the next hour is the queue's.
 *
 * @returns null when there is nothing left to do for the window.
 * @throws Hold when the hour's budget is spent; PipelineError when the key is refused, the source is
 *   down for too long, Postgres is away, or the worker is stopping.
 */
export async function takeOn(context: WorkContext, bench: Bench, windowId: number): Promise<Taken | null> {
  for (;;) {
    const permit = permitOf(context.config, context.clock);
    const wait = waitBefore(context, bench, permit);
    if (wait > 0) {
      await pause(wait, bench.signal);
      continue;
    }
    const claim = await claimWindow(context.db.drizzle, windowId, permit, MAX_LOST_WORKERS).catch((error) => {
      bench.breaker.abandoned();
      throw databaseError(error);
    });
    if (claim.outcome === 'claimed' && stillCounts(context, permit)) return { claim, permit };
    bench.breaker.abandoned();
    if (claim.outcome === 'claimed') {
      // Postgres kept us waiting until the hour turned: the call would count against the next one.
      await unclaimWindow(context.db.drizzle, windowId).catch((error) => {
        throw databaseError(error);
      });
      if (claim.probe) await endKeyTrial(context.db.drizzle, permit.keyHash);
      continue;
    }
    if (claim.outcome === 'gone') return null;
    if (claim.outcome === 'lost') throw new WorkersLost(claim.lostWorkers);
    if (claim.outcome === 'refused') throw refusedKey(claim.diagnostic);
    if (claim.outcome === 'spent') throw new Hold(untilNextHour(permit.now, context.config.EOD_TIMEZONE));
    await pause(PROBE_WAIT_MS, bench.signal);
  }
}

/** Is it still the hour whose budget holds the call, and not its very end? */
function stillCounts({ config, clock }: WorkContext, permit: Permit): boolean {
  const now = clock.now();
  return hourStart(now, config.EOD_TIMEZONE) === permit.hour && turnWait(now, config.EOD_TIMEZONE) === 0;
}

/** Milliseconds until a call may start, as far as the clock and the source's health go. */
function waitBefore({ config }: WorkContext, { breaker, kind }: Bench, permit: Permit): number {
  const turn = turnWait(permit.now, config.EOD_TIMEZONE);
  if (turn > 0) return turn;
  const admission = breaker.admit();
  if (admission.admitted) return 0;
  if (admission.downMs <= patienceMs(config, kind)) return admission.waitMs;
  throw new PipelineError(
    `the source has not answered for ${Math.round(admission.downMs / 1000)} s; nothing more is asked of it`,
    { kind: 'network', retryable: false },
  );
}

/** How long a source may be down before the windows of such a run are given up. */
export function patienceMs(config: Pick<Config, 'EOD_OUTAGE_PATIENCE_MS'>, kind: WindowQueue): number {
  return config.EOD_OUTAGE_PATIENCE_MS / (kind === 'nightly' ? 1 : BACKFILL_IMPATIENCE);
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {
    throw new PipelineError('the worker is stopping', { kind: 'aborted', retryable: true });
  });
}

function refusedKey(diagnostic: string): PipelineError {
  return new PipelineError(`the access key was refused: ${diagnostic}`, {
    kind: 'credential',
    retryable: false,
    diagnostic,
  });
}
