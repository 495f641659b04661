import type { Config } from '../../core/config.ts';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { databaseError } from '../../load/database/errors.ts';
import type { FailureInfo } from '../../load/state/windows.ts';

/** What is to be done about a window whose call or load did not succeed. */
export type Verdict =
  /** Try again after a pause; this try counts. */
  | { readonly act: 'retry' }
  /** Try again after `delayMs`; this try does not count. */
  | { readonly act: 'postpone'; readonly delayMs: number }
  /** Nobody of this queue may ask for a while; no try counts. */
  | { readonly act: 'hold'; readonly delayMs: number }
  /** Ask for less at a time: in ranges of at most so many days. */
  | { readonly act: 'split'; readonly days: number; readonly learned: boolean }
  /** Put it back untouched: we are shutting down. */
  | { readonly act: 'put_back' }
  /** Give up on windows, as failed or as blocked by the source. */
  | { readonly act: 'end'; readonly state: 'failed' | 'blocked'; readonly scope: Scope };

/** How far a refusal reaches. */
export type Scope = 'window' | 'operation' | 'exchange' | 'key';

/** What the verdict needs to know of the window and its past. */
export interface TrySoFar {
  /** Days the window spans, where it can be split; 1 where it cannot. */
  readonly days: number;
  /** Milliseconds until calls may start in the next clock hour. */
  readonly nextHourMs: number;
  /** Tries that counted, this one included. */
  readonly attempt: number;
  /** Milliseconds since the window was first started. */
  readonly ageMs: number;
}

/** Pause before a load is tried again when Postgres was the trouble. */
const DATABASE_PAUSE_MS = 2_000;

/** Not an error: the queue is to wait, and the window was not touched. */
export class Hold extends Error {
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`calls wait for ${Math.ceil(delayMs / 1000)} s`);
    this.name = 'Hold';
    this.delayMs = delayMs;
  }
}

/** The window was taken on by several workers, and each of them ended before it did. */
export class WorkersLost extends Error {
  constructor(times: number) {
    super(`${times} workers ended while they worked on this window`);
    this.name = 'WorkersLost';
  }
}

/** Decides by the facts of the error (field notes, diagnostics table); pure. */
export function judge(
  error: unknown,
  soFar: TrySoFar,
  config: Pick<Config, 'EOD_ATTEMPTS' | 'EOD_NOT_READY_BUDGET_MS' | 'EOD_NOT_READY_WAIT_MS'>,
): Verdict {
  if (error instanceof Hold) return { act: 'hold', delayMs: error.delayMs };
  if (error instanceof WorkersLost) return { act: 'end', state: 'failed', scope: 'window' };
  const { kind, retryable, limitDays, cutShort } = factsOf(error);
  // A shorter range may come whole.
  if (soFar.days > 1 && (cutShort || kind === 'too_large' || kind === 'timeout'))
    return { act: 'split', days: narrower(soFar.days, undefined), learned: false };
  switch (kind) {
    case 'aborted':
      return { act: 'put_back' };
    case 'hourly_quota':
      return { act: 'hold', delayMs: soFar.nextHourMs };
    case 'not_ready':
      return soFar.ageMs < config.EOD_NOT_READY_BUDGET_MS
        ? { act: 'postpone', delayMs: config.EOD_NOT_READY_WAIT_MS }
        : { act: 'end', state: 'failed', scope: 'window' };
    case 'credential':
    case 'monthly_quota':
      return { act: 'end', state: 'blocked', scope: 'key' };
    case 'operation_blocked':
      return { act: 'end', state: 'blocked', scope: 'operation' };
    case 'exchange_blocked':
      return { act: 'end', state: 'blocked', scope: 'exchange' };
    case 'range_refused':
      return soFar.days > 1
        ? { act: 'split', days: narrower(soFar.days, limitDays), learned: limitDays !== undefined }
        : { act: 'end', state: 'blocked', scope: 'window' };
    case 'instrument_blocked':
      return { act: 'end', state: 'blocked', scope: 'window' };
    case 'database':
      return retryable
        ? { act: 'postpone', delayMs: DATABASE_PAUSE_MS }
        : { act: 'end', state: 'failed', scope: 'window' };
  }
  return retryable && soFar.attempt < config.EOD_ATTEMPTS
    ? { act: 'retry' }
    : { act: 'end', state: 'failed', scope: 'window' };
}

/** The limit the source named, or half: always shorter than what was asked. */
function narrower(days: number, limitDays: number | undefined): number {
  return limitDays !== undefined && limitDays >= 1 && limitDays < days ? limitDays : Math.ceil(days / 2);
}

function factsOf(
  error: unknown,
): Pick<PipelineError, 'kind' | 'retryable' | 'limitDays'> & { readonly cutShort?: boolean } {
  // What is not ours comes from a statement outside a load that met a Postgres that is away, or is a
  // defect: trying again would only repeat it.
  return error instanceof PipelineError ? error : databaseError(error);
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

/** The sentence and the source's line to keep with a window. */
export function troubleOf(error: unknown): FailureInfo {
  const diagnostic = error instanceof PipelineError ? error.diagnostic : undefined;
  return { error: messageOf(error), ...(diagnostic === undefined ? {} : { diagnostic }) };
}
