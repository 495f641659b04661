import type { Clock } from '../../core/clock.ts';
import { circuitIsOpen, circuitPauseMs, type Outage } from './failure-policy.ts';

/**
 * Remembers whether the source answers, for all windows of a process. What follows from that is decided by the
 * failure policy.
 */
export interface Breaker {
  /** Null while the source answers. */
  outage(): Omit<Outage, 'runAgeMs'> | null;
  /** One call is about to try the source; its outcome is told by one of the others. */
  beginProbe(): void;
  succeeded(): void;
  failed(): void;
  /** The call was not made, or said nothing about the source. */
  abandoned(): void;
}

/** A closed circuit. */
export function createBreaker(clock: Clock): Breaker {
  let failures = 0;
  let downSince = 0;
  let failedAt = 0;
  let probing = false;
  return {
    outage() {
      if (!circuitIsOpen(failures)) return null;
      const now = clock.now();
      const waitMs = Math.max(0, failedAt + circuitPauseMs(failures) - now);
      return { downMs: now - downSince, sinceFailureMs: now - failedAt, waitMs, probing };
    },
    beginProbe() {
      probing = true;
    },
    succeeded() {
      failures = 0;
      probing = false;
    },
    abandoned() {
      probing = false;
    },
    failed() {
      const now = clock.now();
      if (failures === 0) downSince = now;
      // Calls that were under way when the circuit opened tell nothing new.
      if (!circuitIsOpen(failures) || probing) failures += 1;
      failedAt = now;
      probing = false;
    },
  };
}
