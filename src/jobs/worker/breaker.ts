import type { Clock } from '../../core/clock.ts';
import { circuitIsOpen, circuitPauseMs, type Outage } from './failure-policy.ts';

/**
 * The circuit breaker: remembers, for all windows of a process, whether the source answers. The failure policy decides
 * what follows from that.
 */
export interface Breaker {
  /** Null while the source answers. */
  outage(): Omit<Outage, 'runAgeMs'> | null;
  /** A single call is about to try the source. One of the other methods must be called with its outcome. */
  beginProbe(): void;
  succeeded(): void;
  failed(): void;
  /** The call was not made, or shows nothing about the source. */
  abandoned(): void;
}

/** Creates a breaker whose circuit is closed: the source answers. */
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
      // Calls that had begun before the circuit opened do not count.
      if (!circuitIsOpen(failures) || probing) failures += 1;
      failedAt = now;
      probing = false;
    },
  };
}
