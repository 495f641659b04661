import type { Clock } from '../../core/clock.ts';
import type { NewWindow } from '../../load/state/windows/plan.ts';
import { circuitIsOpen, circuitPauseMs, type Outage } from '../policy/outage-policy.ts';

/** What a call requests: the source may serve one operation and exchange, and not for another. */
type RequestedOf = Pick<NewWindow, 'operation' | 'exchange'>;

/**
 * The circuit breaker: remembers, for all windows of a process, whether the source responds. The failure policy decides
 * what follows from that.
 */
export interface Breaker {
  /** Null while the source responds. */
  outage(): OutageOfSource | null;
  /** A single call is about to try the source. One of the other methods must be called with its outcome. */
  beginProbe(): void;
  succeeded(): void;
  /** @param error why it failed. */
  failed(requested: RequestedOf, error: string): void;
  /** The call was not made, or shows nothing about the source. */
  abandoned(): void;
}

/** An outage of the source, for any run and window. */
interface OutageOfSource extends Omit<Outage, 'runAgeMs' | 'triedBefore'> {
  /** Why the last call failed. */
  readonly error: string;
  /** True if a call for this operation and exchange has failed since the source last responded. */
  hasTried(requested: RequestedOf): boolean;
}

const nameOf = ({ operation, exchange }: RequestedOf) => `${operation}|${exchange}`;

/** Creates a breaker whose circuit is closed: the source responds. */
export function createBreaker(clock: Clock): Breaker {
  let failures = 0;
  let downSince = 0;
  let failedAt = 0;
  let probing = false;
  let lastError = '';
  const tried = new Set<string>();
  return {
    outage() {
      if (!circuitIsOpen(failures)) return null;
      const now = clock.now();
      const waitMs = Math.max(0, failedAt + circuitPauseMs(failures) - now);
      const hasTried = (requested: RequestedOf) => tried.has(nameOf(requested));
      return {
        downMs: now - downSince,
        sinceFailureMs: now - failedAt,
        waitMs,
        probing,
        hasTried,
        error: lastError,
      };
    },
    beginProbe() {
      probing = true;
    },
    succeeded() {
      failures = 0;
      probing = false;
      tried.clear();
    },
    abandoned() {
      probing = false;
    },
    failed(requested, error) {
      const now = clock.now();
      lastError = error;
      if (failures === 0) downSince = now;
      // Calls that had begun before the circuit opened do not count, and neither does the first for another operation
      // and exchange.
      if (!circuitIsOpen(failures) || (probing && tried.has(nameOf(requested)))) failures += 1;
      tried.add(nameOf(requested));
      failedAt = now;
      probing = false;
    },
  };
}
