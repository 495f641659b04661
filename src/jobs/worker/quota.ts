import { createHash } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { zoneOffsetSeconds } from '../../core/days.ts';
import type { HourState, Permit } from '../../load/state/call-budget.ts';
import type { WindowQueue } from './queue.ts';

const HOUR_MS = 3_600_000;

/**
 * No call starts this close to the turn of the hour: sent in the old hour and received in the new,
 * it would count against the wrong one.
 */
const TURN_MS = 2_000;

type QuotaSettings = Pick<
  Config,
  'EOD_ACCESS_KEY' | 'EOD_CALLS_PER_HOUR' | 'EOD_NIGHTLY_RESERVE' | 'EOD_TIMEZONE' | 'EOD_TIMEOUT_MS'
>;

/** Names a key without revealing it. */
export function keyHash(accessKey: string): string {
  return createHash('sha256').update(accessKey).digest('hex').slice(0, 16);
}

/** What a call made now depends on: the key, the clock hour and the shares of its budget. */
export function permitOf(config: QuotaSettings, clock: Clock): Permit {
  const now = clock.now();
  return {
    keyHash: keyHash(config.EOD_ACCESS_KEY ?? ''),
    now,
    hour: hourStart(now, config.EOD_TIMEZONE),
    limit: config.EOD_CALLS_PER_HOUR,
    // A share of 0.3 is not exact in binary.
    backfillLimit: Math.floor(config.EOD_CALLS_PER_HOUR * (1 - config.EOD_NIGHTLY_RESERVE) + 1e-9),
    probeUntil: now + config.EOD_TIMEOUT_MS + 5_000,
  };
}

/** Start of the clock hour; Indian hours turn at half past in UTC. Milliseconds since the epoch. */
export function hourStart(nowMs: number, zone: string): number {
  const offset = zoneOffsetSeconds(zone, Math.floor(nowMs / 1000)) * 1000;
  return Math.floor((nowMs + offset) / HOUR_MS) * HOUR_MS - offset;
}

/** Milliseconds until calls may start in the next clock hour. */
export function untilNextHour(nowMs: number, zone: string): number {
  return hourStart(nowMs, zone) + HOUR_MS + TURN_MS - nowMs;
}

/** Milliseconds to wait because the hour is about to turn or has just turned; 0 otherwise. */
export function turnWait(nowMs: number, zone: string): number {
  const into = nowMs - hourStart(nowMs, zone);
  if (into < TURN_MS) return TURN_MS - into;
  return into > HOUR_MS - TURN_MS ? untilNextHour(nowMs, zone) : 0;
}

/** Calls that the runs of a queue may make in an hour, and how many of them are left in this one. */
export function callsOf(
  queue: WindowQueue,
  permit: Permit,
  hour: HourState,
): { readonly perHour: number; readonly left: number } {
  const perHour = queue === 'nightly' ? permit.limit : permit.backfillLimit;
  return { perHour, left: hour.refused === null ? Math.max(0, perHour - hour.calls) : 0 };
}
