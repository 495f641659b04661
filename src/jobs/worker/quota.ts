import { createHash } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { zoneOffsetSeconds } from '../../core/days.ts';
import type { Source } from '../../extract/types.ts';
import type { HourState, Permit } from '../../load/state/call-budget.ts';
import { ACCEPTED_KEY_TRUST_MS, HOUR_LOOK_MS, isTurnOfHour, REFUSED_KEY_REST_MS } from './failure-policy.ts';
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

/**
 * What a call made now depends on: the key, the clock hour and the shares of its budget.
 *
 * @param sourceClock the clock by which the source counts its hours; ours where it is not known.
 */
export function permitOf(config: QuotaSettings, clock: Clock, sourceClock = clock): Permit {
  const now = clock.now();
  return {
    keyHash: keyHash(config.EOD_ACCESS_KEY ?? ''),
    now,
    hour: hourStart(sourceClock.now(), config.EOD_TIMEZONE),
    closedBefore: now - HOUR_LOOK_MS,
    limit: config.EOD_CALLS_PER_HOUR,
    // A share of 0.3 is not exact in binary.
    backfillLimit: Math.floor(config.EOD_CALLS_PER_HOUR * (1 - config.EOD_NIGHTLY_RESERVE) + 1e-9),
    keyGoodSince: now - ACCEPTED_KEY_TRUST_MS,
    keyRefusedSince: now - REFUSED_KEY_REST_MS,
    probeUntil: now + config.EOD_TIMEOUT_MS + 5_000,
  };
}

/** The clock by which the source counts its hours. */
export interface SourceClock extends Clock {
  /** Milliseconds since the hour turned, by the source's Date headers alone. */
  intoHour(): number;
  /** The source says that the hour's quota is used up. Soon after the turn, its hour has not turned yet. */
  hourRefused(): void;
}

/** Follows the source's Date headers, and its refusals where its quota turns later than those say. */
export function createSourceClock({
  clock,
  source,
  config,
}: {
  readonly clock: Clock;
  readonly source: Pick<Source, 'clockOffsetMs'>;
  readonly config: QuotaSettings;
}): SourceClock {
  let lagMs = 0;
  const dated = () => clock.now() + source.clockOffsetMs();
  const intoHour = () => dated() - hourStart(dated(), config.EOD_TIMEZONE);
  return {
    now: () => dated() - lagMs,
    intoHour,
    hourRefused() {
      lagMs = isTurnOfHour(intoHour()) ? intoHour() + HOUR_LOOK_MS : 0;
    },
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
