import { type Clock, databaseNow } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { HOUR_MS, zoneOffsetSeconds } from '../../core/days.ts';
import { sha256 } from '../../core/sha256.ts';
import type { Source } from '../../extract/types.ts';
import type { CallLimit } from '../../state/source/call-budget.ts';
import { OPENING_FAILURES, OUTAGE_PAUSE_MS } from './failure-policy.ts';

/**
 * No call starts within this time before or after the full hour: it could be sent in one hour and be counted by the
 * source in the other.
 */
const FULL_HOUR_MARGIN_MS = 2_000;

type QuotaSettings = Pick<
  Config,
  'EOD_ACCESS_KEY' | 'EOD_CALLS_PER_HOUR' | 'EOD_NIGHTLY_RESERVE' | 'EOD_TIMEZONE'
>;

/** Identifies a key without revealing it. */
export function keyHash(accessKey: string): string {
  return sha256(accessKey).slice(0, 16);
}

/**
 * The facts on which it depends whether a call may be made now: the key, the clock hour, its budget and how much of it
 * backfills may use.
 *
 * @param sourceClock the clock by which the source counts hours; by default our own.
 */
export function computeCallLimit(config: QuotaSettings, clock: Clock, sourceClock = clock): CallLimit {
  const now = databaseNow(clock);
  // Rounding errors of the subtraction must not cost a call.
  const backfillLimit = Math.floor(config.EOD_CALLS_PER_HOUR * (1 - config.EOD_NIGHTLY_RESERVE) + 1e-9);
  return {
    keyHash: keyHash(config.EOD_ACCESS_KEY ?? ''),
    now,
    hour: hourStart(databaseNow(sourceClock), config.EOD_TIMEZONE),
    limit: config.EOD_CALLS_PER_HOUR,
    backfillLimit,
    // Where all calls are reserved for nights, an older night has to proceed too.
    leftoverLimit: backfillLimit > 0 ? backfillLimit : config.EOD_CALLS_PER_HOUR,
    downCalledBefore: now - OUTAGE_PAUSE_MS,
    openingFailures: OPENING_FAILURES,
  };
}

/** A Date header moves the hour by no more than this: else a proxy with a wrong clock would begin hours again and again. */
const MAX_HOUR_OFFSET_MS = 300_000;

/** Creates the clock by which the source counts hours: it follows the source's Date headers. */
export function createSourceClock({
  clock,
  source,
}: {
  readonly clock: Clock;
  readonly source: Pick<Source, 'clockOffsetMs'>;
}): Clock {
  const offset = () => Math.max(-MAX_HOUR_OFFSET_MS, Math.min(MAX_HOUR_OFFSET_MS, source.clockOffsetMs()));
  return { now: () => databaseNow(clock) + offset() };
}

/** Start of the clock hour in a zone (Indian hours begin at half past in UTC). Milliseconds since the epoch. */
export function hourStart(nowMs: number, zone: string): number {
  const offset = zoneOffsetSeconds(zone, Math.floor(nowMs / 1000)) * 1000;
  return Math.floor((nowMs + offset) / HOUR_MS) * HOUR_MS - offset;
}

/** Milliseconds until calls may start in the next clock hour. */
export function untilNextHour(nowMs: number, zone: string): number {
  return hourStart(nowMs, zone) + HOUR_MS + FULL_HOUR_MARGIN_MS - nowMs;
}

/** Milliseconds to wait because it is shortly before or after the full hour; 0 otherwise. */
export function fullHourWait(nowMs: number, zone: string): number {
  const into = nowMs - hourStart(nowMs, zone);
  if (into < FULL_HOUR_MARGIN_MS) return FULL_HOUR_MARGIN_MS - into;
  return into > HOUR_MS - FULL_HOUR_MARGIN_MS ? untilNextHour(nowMs, zone) : 0;
}

/** After how many hours this many calls are made, if those that are left are made in this one; Infinity: never. */
export function furtherHours(
  calls: number,
  { perHour, left }: { readonly perHour: number; readonly left: number },
): number {
  return calls <= left ? 0 : Math.ceil((calls - left) / perHour);
}
