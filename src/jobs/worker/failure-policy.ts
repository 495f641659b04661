import type { Config } from '../../core/config.ts';
import { type ErrorKind, messageOf, PipelineError } from '../../core/errors.ts';
import { databaseError } from '../../load/database/errors.ts';
import type { FailureInfo } from '../../load/state/windows/windows.ts';
import type { WindowQueue } from './queue.ts';

/**
 * The whole answer to the question what is done about a window that brought no data: for every kind of error, within
 * every bound, this file decides, and nothing else does. (What is no window has its bounds beside it: the follow-up of a
 * run in jobs/runs/finish.ts, the delivery of alerts in load/state/alerts.ts, a lost connection in load/database/retry.ts.) An error brings facts only: its kind, the HTTP status, the
 * pause the source asked for. Everything here is pure. The table of it in docs/reliability.md is generated
 * (`npm run docs:generate`).
 */

/** What is done about a window whose call or load did not succeed. */
export type FailureAction =
  /** Try again after `delayMs`; this attempt counts. */
  | { readonly act: 'retry'; readonly delayMs: number }
  /** Try again after `delayMs`; this attempt does not count. */
  | { readonly act: 'postpone'; readonly delayMs: number }
  /** Ask again after `delayMs` for what the source prepares; no attempt counts. `waitInWorker`: its worker
   * does nothing else meanwhile. */
  | { readonly act: 'await_data'; readonly delayMs: number; readonly waitInWorker: boolean }
  /**
   * Nobody of this queue makes a call for `delayMs`; no attempt counts. `closeHour`: the source said so
   * itself, whatever was counted here.
   */
  | { readonly act: 'rate_limit'; readonly delayMs: number; readonly closeHour: boolean }
  /** Ask in ranges of at most `days`. `named`: by the source, so that the run's other windows are split unasked. */
  | { readonly act: 'split'; readonly days: number; readonly named: boolean }
  /** Put the window back as if it had not been started: the worker is stopping. */
  | { readonly act: 'put_back' }
  /** End windows, as failed or as blocked by the source. */
  | { readonly act: 'end'; readonly state: 'failed' | 'blocked'; readonly scope: Scope };

/** Which windows end: this one, or the open ones of its run for the operation or exchange, or all that use the key. */
export type Scope = 'window' | 'operation' | 'exchange' | 'key';

/** What is known of the window and the source when a failure is decided on. */
export interface Situation {
  /** Attempts that counted, this one included. */
  readonly attempt: number;
  /** Milliseconds the window was put off in all because its answer was not ready. */
  readonly notReadyMs: number;
  /** Days the window spans, where it can be split; 1 where it cannot. */
  readonly days: number;
  /** Milliseconds since the clock hour turned, by the source's clock as far as it is known. */
  readonly intoHourMs: number;
  /** Milliseconds until calls may start in the next clock hour. */
  readonly nextHourMs: number;
  /** Null while the source answers. */
  readonly outage: Outage | null;
  readonly queue: WindowQueue;
  /** A random number from 0 to 1, so that workers do not come back all at once. */
  readonly chance: number;
}

/** What is known of a source that does not answer. */
export interface Outage {
  /** Milliseconds since the first of the calls that failed in a row. */
  readonly downMs: number;
  /** Milliseconds since the last call to it failed. */
  readonly sinceFailureMs: number;
  /** Milliseconds until it is to be tried again. */
  readonly waitMs: number;
  /** A single call is trying it just now. */
  readonly probing: boolean;
  /** Milliseconds since the run was started or resumed. */
  readonly runAgeMs: number;
}

type PolicyConfig = Pick<
  Config,
  | 'EOD_ATTEMPTS'
  | 'EOD_BACKOFF_MS'
  | 'EOD_CALLS_PER_HOUR'
  | 'EOD_CONCURRENCY'
  | 'EOD_NOT_READY_BUDGET_MS'
  | 'EOD_NOT_READY_WAIT_MS'
  | 'EOD_OUTAGE_PATIENCE_MS'
>;

/** A window that has lost more workers than this fails without another call: something about it may be what ends them. */
export const MAX_LOST_WORKERS = 5;

/** Longest pause between counted attempts. */
export const MAX_BACKOFF_MS = 300_000;

/** The source's Retry-After is followed up to here, or up to the longest outage the run waits for where that is shorter. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/** Longest pause before an answer that is not ready is asked for again, unless EOD_NOT_READY_WAIT_MS is longer. */
const MAX_NOT_READY_PAUSE_MS = 60_000;

/** Pause before a load is tried again when Postgres was away. */
const DATABASE_PAUSE_MS = 2_000;

/** A backfill, where somebody is watching, gives up on a source that does not answer this much sooner than a nightly run. */
const BACKFILL_SHARE = 60;

/** Not an error: the hour's budget holds no call, and the window was not touched. */
export class RateLimited extends Error {
  constructor() {
    super('the calls of this hour are used up');
    this.name = 'RateLimited';
  }
}

/** Not an error: other windows are to be asked first, and the window was not touched. */
export class NotItsTurn extends Error {
  /** How many windows are to be asked first, at least. */
  readonly ahead: number;

  constructor(ahead: number) {
    super('other windows are to be asked first');
    this.name = 'NotItsTurn';
    this.ahead = ahead;
  }
}

/**
 * How often workers look again at an hour whose calls are used up: the limit may have been raised, and one call a
 * minute shows whether the source answers again.
 */
export const HOUR_LOOK_MS = 60_000;

/** How long a key that the source refused is left alone before one call, for all runs, tries it again. */
export const REFUSED_KEY_REST_MS = 12 * 3_600_000;

/** How long a key is believed to be good without a trial after the source last accepted it. */
export const ACCEPTED_KEY_TRUST_MS = 600_000;

/** A refusal so soon after the turn of the hour may come from a source whose clock is behind. */
const TURN_OF_HOUR_MS = 300_000;

/** May the source's hour not have turned yet? Then a refusal does not close the new one. */
export function isTurnOfHour(intoHourMs: number): boolean {
  return intoHourMs < TURN_OF_HOUR_MS;
}

/** Nobody of the queue makes a call before the next hour, or before the hour is looked at again. */
const waitForCalls = ({ nextHourMs }: Situation, closeHour: boolean): FailureAction => ({
  act: 'rate_limit',
  delayMs: Math.min(nextHourMs, HOUR_LOOK_MS),
  closeHour,
});

/** The window was claimed by several workers, and each of them ended before it did. */
export class WorkersLost extends Error {
  constructor(times: number) {
    super(`${times} workers ended while they worked on this window`);
    this.name = 'WorkersLost';
  }
}

/** Has a window lost more workers than it may? */
export function lostTooManyWorkers(lostWorkers: number): boolean {
  return lostWorkers > MAX_LOST_WORKERS;
}

/** How long the source may be down before the windows of such a run are given up. */
export function longestOutageMs(config: Pick<Config, 'EOD_OUTAGE_PATIENCE_MS'>, queue: WindowQueue): number {
  return config.EOD_OUTAGE_PATIENCE_MS / (queue === 'nightly' ? 1 : BACKFILL_SHARE);
}

/** So many calls that fail in a row open the circuit. */
const OPENING_FAILURES = 5;

/** Does the source count as down after so many calls that failed in a row? Then single calls try it. */
export function circuitIsOpen(failures: number): boolean {
  return failures >= OPENING_FAILURES;
}

const FIRST_PROBE_MS = 1_000;
const LONGEST_PROBE_PAUSE_MS = 30_000;

/** Pause before a source that is down is tried again: twice as long after each try that failed. */
export function circuitPauseMs(failures: number): number {
  return Math.min(LONGEST_PROBE_PAUSE_MS, FIRST_PROBE_MS * 2 ** (failures - OPENING_FAILURES));
}

/** While a single call tries the source or the key, the others look again after this long. */
export const PROBE_LOOK_MS = 200;

/**
 * What a window does that is to be asked for while the source is down. Its run has waited since the source went
 * down or since the run began, whichever was later. It is given up only by a call that failed after its time was
 * over, and each run tries the source as soon as it begins: so one that is back is noticed at once.
 */
export function decideDuringOutage(
  { downMs, sinceFailureMs, waitMs, probing, runAgeMs }: Outage,
  queue: WindowQueue,
  config: Pick<Config, 'EOD_OUTAGE_PATIENCE_MS'>,
): { readonly act: 'call' | 'give_up' } | { readonly act: 'wait'; readonly delayMs: number } {
  if (probing) return { act: 'wait', delayMs: PROBE_LOOK_MS };
  const waitedMs = Math.min(downMs, runAgeMs);
  const leftMs = longestOutageMs(config, queue) - waitedMs;
  const failedInTime = sinceFailureMs > waitedMs || sinceFailureMs > -leftMs;
  if (leftMs < 0) return { act: failedInTime ? 'call' : 'give_up' };
  if (waitMs === 0 || sinceFailureMs > waitedMs) return { act: 'call' };
  return { act: 'wait', delayMs: Math.min(waitMs, Math.ceil(leftMs) + 1) };
}

/** Pause before a counted attempt: exponential from the base up to a bound, half of it left to chance. */
export function backoffMs(attempt: number, baseMs: number, chance: number): number {
  const full = Math.min(MAX_BACKOFF_MS, baseMs * 2 ** (attempt - 1));
  return Math.round(full / 2 + (full / 2) * chance);
}

/** Each pause is as long as all before it together: a source that takes long is not asked hundreds of times. */
function notReadyPauseMs(
  notReadyMs: number,
  { EOD_NOT_READY_WAIT_MS }: Pick<Config, 'EOD_NOT_READY_WAIT_MS'>,
): number {
  return Math.max(EOD_NOT_READY_WAIT_MS, Math.min(MAX_NOT_READY_PAUSE_MS, notReadyMs));
}

/**
 * For how long a worker may wait in place of one more call: what is asked for and not fetched before the hour's
 * calls are used up has to be asked for again.
 */
function slotMsPerCall({
  EOD_CALLS_PER_HOUR,
  EOD_CONCURRENCY,
}: Pick<Config, 'EOD_CALLS_PER_HOUR' | 'EOD_CONCURRENCY'>): number {
  return (3_600_000 * EOD_CONCURRENCY) / EOD_CALLS_PER_HOUR;
}

const FAIL: Extract<FailureAction, { act: 'end' }> = { act: 'end', state: 'failed', scope: 'window' };
const PUT_BACK: Extract<FailureAction, { act: 'put_back' }> = { act: 'put_back' };
const POSTPONE_FOR_DATABASE: Extract<FailureAction, { act: 'postpone' }> = {
  act: 'postpone',
  delayMs: DATABASE_PAUSE_MS,
};

const block = (scope: Scope): FailureAction => ({ act: 'end', state: 'blocked', scope });

type Decide = (error: PipelineError, situation: Situation, config: PolicyConfig) => FailureAction;

/** A counted attempt after a pause, while any are left. */
const retry: Decide = (error, { attempt, queue, chance }, config) => {
  const { retryAfterMs } = error;
  if (attempt >= attemptsFor(error, config)) return FAIL;
  const longest = Math.min(MAX_RETRY_AFTER_MS, longestOutageMs(config, queue));
  const pause = backoffMs(attempt, config.EOD_BACKOFF_MS, chance);
  return { act: 'retry', delayMs: retryAfterMs === undefined ? pause : Math.min(longest, retryAfterMs) };
};

/** The same, unless the source is down: how long to wait for it is not a matter of attempts. */
const retryOrWaitOut: Decide = (error, situation, config) => {
  const { outage, queue } = situation;
  if (outage === null || sourceShown(error) !== 'failure') return retry(error, situation, config);
  const next = decideDuringOutage(outage, queue, config);
  if (next.act === 'give_up') return FAIL;
  return { act: 'postpone', delayMs: next.act === 'wait' ? next.delayMs : 0 };
};

/**
 * What an HTTP status leads to: the first line that fits. (401 does not come here: it is a refusal of the key.)
 * `example` is the status that stands for the line in the generated table.
 */
export const STATUS_RULES: readonly {
  readonly statuses: string;
  readonly example: number;
  readonly fits: (status: number) => boolean;
  /** How often the request is made in all. */
  readonly attempts: (config: PolicyConfig) => number;
  readonly source: Evidence['source'];
}[] = [
  {
    statuses: 'HTTP status 408, 425 or 429',
    example: 429,
    fits: (status) => status === 408 || status === 425 || status === 429,
    attempts: ({ EOD_ATTEMPTS }) => EOD_ATTEMPTS,
    source: 'failure',
  },
  {
    statuses: 'HTTP status 5xx',
    example: 503,
    fits: (status) => status >= 500,
    attempts: ({ EOD_ATTEMPTS }) => EOD_ATTEMPTS,
    source: 'failure',
  },
  { statuses: 'any other HTTP status', example: 404, fits: () => true, attempts: () => 1, source: 'success' },
];

/** The rule of an error of kind `http_status`; undefined for any other. */
function statusRule({ kind, status = 0 }: PipelineError) {
  return kind === 'http_status' ? STATUS_RULES.find(({ fits }) => fits(status)) : undefined;
}

/**
 * How often the request is made in all. A connection that cannot be made may be the beginning of an outage, which is
 * known when the circuit opens: until then no window is given up for it, however few its attempts.
 */
function attemptsFor(error: PipelineError, config: PolicyConfig): number {
  if (error.kind === 'network' && !error.cutShort) return Math.max(config.EOD_ATTEMPTS, OPENING_FAILURES);
  return statusRule(error)?.attempts(config) ?? config.EOD_ATTEMPTS;
}

const half = (days: number) => Math.ceil(days / 2);

interface Rule {
  readonly decide: Decide;
  /** What the failure of a call says of the source: did it answer? */
  readonly source: Evidence['source'];
  /** What it says of the access key. */
  readonly key: Evidence['key'];
}

/** One line for each kind of error. */
const RULES: Readonly<Record<ErrorKind, Rule>> = {
  credential: { decide: () => block('key'), source: 'success', key: 'refused' },
  monthly_quota: { decide: () => block('key'), source: 'success', key: 'accepted' },
  hourly_quota: {
    decide: (_error, situation) => waitForCalls(situation, !isTurnOfHour(situation.intoHourMs)),
    source: 'success',
    key: 'accepted',
  },
  not_ready: {
    decide: (_error, { notReadyMs }, config) => {
      const leftMs = config.EOD_NOT_READY_BUDGET_MS - notReadyMs;
      if (leftMs <= 0) return FAIL;
      const delayMs = Math.min(leftMs, notReadyPauseMs(notReadyMs, config));
      return { act: 'await_data', delayMs, waitInWorker: delayMs <= slotMsPerCall(config) };
    },
    source: 'success',
    key: 'accepted',
  },
  operation_blocked: { decide: () => block('operation'), source: 'success', key: 'accepted' },
  exchange_blocked: { decide: () => block('exchange'), source: 'success', key: 'accepted' },
  instrument_blocked: { decide: () => block('window'), source: 'success', key: 'accepted' },
  range_refused: {
    // Too long, or too far back: the line does not say which, and a length that it names may be neither. Asking
    // for it in parts shows it.
    decide: ({ limitDays = 0 }, { days }) => {
      if (days <= 1) return block('window');
      const named = limitDays >= 1 && limitDays < days;
      return { act: 'split', days: named ? limitDays : half(days), named };
    },
    source: 'success',
    key: 'accepted',
  },
  bad_request: { decide: () => FAIL, source: 'success', key: 'accepted' },
  unknown_diagnostic: { decide: retry, source: 'success', key: 'unknown' },
  timeout: { decide: retryOrWaitOut, source: 'failure', key: 'unknown' },
  network: { decide: retryOrWaitOut, source: 'failure', key: 'unknown' },
  http_status: { decide: retryOrWaitOut, source: 'failure', key: 'unknown' },
  too_large: { decide: () => FAIL, source: 'success', key: 'unknown' },
  unreadable: { decide: retry, source: 'success', key: 'unknown' },
  database_away: { decide: () => POSTPONE_FOR_DATABASE, source: 'unknown', key: 'unknown' },
  database_locked: { decide: () => POSTPONE_FOR_DATABASE, source: 'unknown', key: 'unknown' },
  database: { decide: () => FAIL, source: 'unknown', key: 'unknown' },
  usage: { decide: () => FAIL, source: 'unknown', key: 'unknown' },
  aborted: { decide: () => PUT_BACK, source: 'unknown', key: 'unknown' },
};

/** Answers that a shorter range may bring whole. */
function mayBeTooMuch({ kind, cutShort }: PipelineError): boolean {
  return cutShort || kind === 'too_large' || kind === 'timeout';
}

/** Decides what is done about anything that was thrown while a window was worked on. */
export function decideFailure(error: unknown, situation: Situation, config: PolicyConfig): FailureAction {
  if (error instanceof RateLimited) return waitForCalls(situation, false);
  if (error instanceof NotItsTurn) return { act: 'postpone', delayMs: error.ahead * PROBE_LOOK_MS };
  if (error instanceof WorkersLost) return FAIL;
  const failure = failureOf(error);
  if (situation.days > 1 && mayBeTooMuch(failure))
    return { act: 'split', days: half(situation.days), named: false };
  return RULES[failure.kind].decide(failure, situation, config);
}

/**
 * What is not ours comes from a statement that met a Postgres that is away, or is a defect: trying again
 * would only repeat it.
 */
function failureOf(error: unknown): PipelineError {
  return error instanceof PipelineError ? error : databaseError(error);
}

/**
 * The same for work that calls nobody: a file, a kept answer, a tick of a schedule, what is written down about a
 * window. It ends, unless only Postgres or this process was away: then it is left for later.
 */
export function decideLocalFailure(
  error: unknown,
): Extract<FailureAction, { act: 'postpone' | 'put_back' | 'end' }> {
  switch (failureOf(error).kind) {
    case 'database_away':
    case 'database_locked':
      return POSTPONE_FOR_DATABASE;
    case 'aborted':
      return PUT_BACK;
    default:
      return FAIL;
  }
}

/** What the failure of a call says of others. */
interface Evidence {
  /** What it says of the source's health: the source answered, it did not, or nothing. */
  readonly source: 'success' | 'failure' | 'unknown';
  /** What it says of the access key. */
  readonly key: 'accepted' | 'refused' | 'unknown';
}

/** What it says of the quota of the hour. */
type HourEvidence = 'open' | 'closed' | 'unknown';

/**
 * What an error of a call to the source says of the source and of the key.
 *
 * @param days as in `Situation`.
 */
export function evidenceOf(error: unknown, days: number): Evidence & { readonly hour: HourEvidence } {
  if (!(error instanceof PipelineError)) return { source: 'unknown', key: 'unknown', hour: 'unknown' };
  const { key } = RULES[error.kind];
  return {
    // Asked for less, it may answer in time.
    source: error.kind === 'timeout' && days > 1 ? 'unknown' : sourceShown(error),
    // Any line except one that refuses the key shows that the key is good.
    key: key === 'accepted' && error.diagnostic === undefined ? 'unknown' : key,
    hour: error.kind === 'hourly_quota' ? 'closed' : error.kind === 'not_ready' ? 'open' : 'unknown',
  };
}

/** What a failed call shows of the source. Half an answer is an answer. */
function sourceShown(error: PipelineError): Evidence['source'] {
  const source = statusRule(error)?.source ?? RULES[error.kind].source;
  return source === 'failure' && error.cutShort ? 'success' : source;
}

/** The sentence, and the source's line where there is one, to keep with a window. */
export function failureInfo(error: unknown): FailureInfo {
  const diagnostic = error instanceof PipelineError ? error.diagnostic : undefined;
  return { error: messageOf(error), ...(diagnostic === undefined ? {} : { diagnostic }) };
}
