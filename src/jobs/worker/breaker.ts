import type { Clock } from '../../core/clock.ts';

/** May a call be made to the source now? */
type Admission =
  | { readonly admitted: true }
  /** `downMs`: how long the source has not answered. */
  | { readonly admitted: false; readonly waitMs: number; readonly downMs: number };

/** Stops asking a source that does not answer, and tries it with single calls until it does. */
export interface Breaker {
  admit(): Admission;
  succeeded(): void;
  failed(): void;
  /** The admitted call was not made, or said nothing about the source. */
  abandoned(): void;
  /** How long the source has not answered and when it is tried again; null while it answers. */
  outage(): { readonly downMs: number; readonly waitMs: number } | null;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** While a single call tries the source, the others look again after this long. */
const PROBE_WAIT_MS = 500;

/** Opens after `threshold` failures in a row; each failed try doubles the pause before the next. */
export function createBreaker(clock: Clock, threshold = 5): Breaker {
  let failures = 0;
  let downSince = 0;
  let pauseMs = FIRST_PAUSE_MS;
  let tryAt = 0;
  let probing = false;
  return {
    admit() {
      if (failures < threshold) return { admitted: true };
      const now = clock.now();
      if (!probing && now >= tryAt) {
        probing = true;
        return { admitted: true };
      }
      return { admitted: false, waitMs: probing ? PROBE_WAIT_MS : tryAt - now, downMs: now - downSince };
    },
    succeeded() {
      failures = 0;
      probing = false;
      pauseMs = FIRST_PAUSE_MS;
    },
    abandoned() {
      probing = false;
    },
    outage() {
      if (failures < threshold) return null;
      const now = clock.now();
      return { downMs: now - downSince, waitMs: Math.max(PROBE_WAIT_MS, tryAt - now) };
    },
    failed() {
      const now = clock.now();
      if (failures === 0) downSince = now;
      failures += 1;
      if (failures < threshold) return;
      probing = false;
      tryAt = now + pauseMs;
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    },
  };
}
