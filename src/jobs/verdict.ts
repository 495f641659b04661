import type { Config } from '../core/config.ts';
import { messageOf, PipelineError } from '../core/errors.ts';

/** What is to be done about a window whose call or load did not succeed. */
export type Verdict =
  /** Try again after a pause; this try counts. */
  | { readonly act: 'retry' }
  /** Try again after `delayMs`; this try does not count. */
  | { readonly act: 'postpone'; readonly delayMs: number }
  /** Nobody may ask before the next clock hour; no try counts. */
  | { readonly act: 'next_hour' }
  /** Put it back untouched: we are shutting down. */
  | { readonly act: 'put_back' }
  /** Give up on windows, as failed or as blocked by the source. */
  | { readonly act: 'end'; readonly state: 'failed' | 'blocked'; readonly scope: Scope };

/** How far a refusal reaches. */
export type Scope = 'window' | 'operation' | 'operation_exchange' | 'run';

/** The windows of the past that this verdict needs to know. */
export interface TrySoFar {
  /** Tries that counted, this one included. */
  readonly attempt: number;
  /** Milliseconds since the window was first started. */
  readonly ageMs: number;
}

/** Pause before a load is tried again when Postgres was the trouble. */
const DATABASE_PAUSE_MS = 2_000;

/** Decides by the facts of the error (field notes, diagnostics table); pure. */
export function judge(
  error: unknown,
  soFar: TrySoFar,
  config: Pick<Config, 'EOD_ATTEMPTS' | 'EOD_NOT_READY_BUDGET_MS' | 'EOD_NOT_READY_WAIT_MS'>,
): Verdict {
  const { kind, retryable } = factsOf(error);
  switch (kind) {
    case 'aborted':
      return { act: 'put_back' };
    case 'hourly_quota':
      return { act: 'next_hour' };
    case 'not_ready':
      return soFar.ageMs < config.EOD_NOT_READY_BUDGET_MS
        ? { act: 'postpone', delayMs: config.EOD_NOT_READY_WAIT_MS }
        : { act: 'end', state: 'failed', scope: 'window' };
    case 'credential':
    case 'monthly_quota':
      return { act: 'end', state: 'blocked', scope: 'run' };
    case 'operation_blocked':
      return { act: 'end', state: 'blocked', scope: 'operation' };
    case 'exchange_blocked':
      return { act: 'end', state: 'blocked', scope: 'operation_exchange' };
    case 'instrument_blocked':
    case 'range_refused':
      return { act: 'end', state: 'blocked', scope: 'window' };
    case 'database':
      return retryable
        ? { act: 'postpone', delayMs: DATABASE_PAUSE_MS }
        : { act: 'end', state: 'failed', scope: 'window' };
    default:
      return retryable && soFar.attempt < config.EOD_ATTEMPTS
        ? { act: 'retry' }
        : { act: 'end', state: 'failed', scope: 'window' };
  }
}

function factsOf(error: unknown): Pick<PipelineError, 'kind' | 'retryable'> {
  // Anything that is not one of ours is a defect: trying again would only repeat it.
  return error instanceof PipelineError ? error : { kind: 'unreadable', retryable: false };
}

/**
 * Pause before a counted try: the source's own Retry-After, or exponential from the base, at most
 * five minutes, with half of it left to chance so that workers do not come back all at once.
 */
export function backoffMs(attempt: number, error: unknown, baseMs: number, chance: number): number {
  const asked = error instanceof PipelineError ? error.retryAfterMs : undefined;
  if (asked !== undefined) return asked;
  const full = Math.min(300_000, baseMs * 2 ** (attempt - 1));
  return Math.round(full / 2 + (full / 2) * chance);
}

/** Milliseconds to the next full clock hour of UTC offset zones; Indian hours end at :30 UTC. */
export function untilNextHour(nowMs: number, zoneOffsetSeconds: number): number {
  const hour = 3_600_000;
  const local = nowMs + zoneOffsetSeconds * 1000;
  return hour - (local % hour);
}

/** The sentence and the source's line to keep with a window. */
export function troubleOf(error: unknown): { error: string; diagnostic?: string } {
  const diagnostic = error instanceof PipelineError ? error.diagnostic : undefined;
  return { error: messageOf(error), ...(diagnostic === undefined ? {} : { diagnostic }) };
}
