import type { Config } from '../../core/config.ts';
import type { WindowQueue } from '../queue/queue.ts';

/**
 * Decides what is done while the source does not respond: when its circuit opens, how often it is tried, and when a
 * window is given up. Part of the failure policy, and as pure.
 */

/** What is known about a source that does not respond. */
export interface Outage {
  /** Milliseconds since the first of the consecutive calls that failed. */
  readonly downMs: number;
  /** Milliseconds since the last call failed. */
  readonly sinceFailureMs: number;
  /** Milliseconds until the source is to be tried again. */
  readonly waitMs: number;
  /** True if a single call is trying it now. */
  readonly probing: boolean;
  /** Milliseconds since the run was started or resumed. */
  readonly runAgeMs: number;
  /** True if a call for the window's operation and exchange has failed since the source last responded. */
  readonly triedBefore: boolean;
}

/** A backfill, which somebody is watching, waits for a source that does not respond for this part of the time only. */
const BACKFILL_SHARE = 60;

/** How long the source may be down before the windows of a queue are given up. Unit: milliseconds. */
export function longestOutageMs(config: Pick<Config, 'EOD_OUTAGE_PATIENCE_MS'>, queue: WindowQueue): number {
  return config.EOD_OUTAGE_PATIENCE_MS / (queue === 'nightly' ? 1 : BACKFILL_SHARE);
}

/** This many consecutive failed calls open the circuit. */
export const OPENING_FAILURES = 5;

/** True if the circuit is open after this many consecutive failed calls. Then only single calls try the source. */
export function circuitIsOpen(failures: number): boolean {
  return failures >= OPENING_FAILURES;
}

const FIRST_PROBE_MS = 1_000;
const LONGEST_PROBE_PAUSE_MS = 30_000;

/** Pause before a source that is down is tried again; it doubles with each failed try. Unit: milliseconds. */
export function circuitPauseMs(failures: number): number {
  return Math.min(LONGEST_PROBE_PAUSE_MS, FIRST_PROBE_MS * 2 ** (failures - OPENING_FAILURES));
}

/** While a single call tries the source or the key, the other workers check its result this often. */
export const PROBE_RECHECK_MS = 200;

/**
 * Decides whether a window is requested, waits or is given up while the source is down. Its run has waited since the
 * source went down or the run began, whichever was later. A window is given up only if a call has failed after that
 * waiting time was over, and each run tries the source when it begins, so that a recovered source is noticed at once.
 * The first call for each operation and exchange is made at once, so that no window is given up because of others.
 */
export function decideDuringOutage(
  { downMs, sinceFailureMs, waitMs, probing, runAgeMs, triedBefore }: Outage,
  queue: WindowQueue,
  config: Pick<Config, 'EOD_OUTAGE_PATIENCE_MS'>,
): { readonly act: 'call' | 'give_up' } | { readonly act: 'wait'; readonly delayMs: number } {
  if (probing) return { act: 'wait', delayMs: PROBE_RECHECK_MS };
  if (!triedBefore) return { act: 'call' };
  const waitedMs = Math.min(downMs, runAgeMs);
  const leftMs = longestOutageMs(config, queue) - waitedMs;
  const failedInTime = sinceFailureMs > waitedMs || sinceFailureMs > -leftMs;
  if (leftMs < 0) return { act: failedInTime ? 'call' : 'give_up' };
  if (waitMs === 0 || sinceFailureMs > waitedMs) return { act: 'call' };
  return { act: 'wait', delayMs: Math.min(waitMs, Math.ceil(leftMs) + 1) };
}
