import type { Config } from '../../core/config.ts';
import { type ErrorKind, PipelineError } from '../../core/errors.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import type { FailureInfo } from '../../state/windows/windows.ts';
import type { WindowQueue } from '../queue/queue.ts';

/**
 * Decides what is done about a window whose call or load failed, for every kind of error and every limit. An error only
 * has data: its kind, the HTTP status, the pause that the source requested. Everything here is pure. The table in
 * docs/reliability.md is generated from it (`npm run docs:generate`).
 *
 * Other work has its limits elsewhere: the checks and alerts after a run in jobs/runs/finish.ts, the delivery of alerts
 * in state/alerts.ts, lost connections in postgres/retry.ts.
 */

/** What is done about a window whose call or load failed. */
export type FailureAction =
  /** Try again after `delayMs`; this attempt counts. */
  | { readonly act: 'retry'; readonly delayMs: number }
  /** Try again after `delayMs`; this attempt does not count. */
  | { readonly act: 'postpone'; readonly delayMs: number }
  /**
   * The source is preparing the response: request again after `delayMs`; this attempt does not count. `isWaitedInWorker`:
   * the worker waits and takes no other window.
   */
  | { readonly act: 'await_data'; readonly delayMs: number; readonly isWaitedInWorker: boolean }
  /**
   * No worker takes a window from this queue for `delayMs`; the attempt does not count. `isHourClosed`: the source itself
   * says that the hour's quota is used up, whatever was counted here.
   */
  | { readonly act: 'rate_limit'; readonly delayMs: number; readonly isHourClosed: boolean }
  /** Replace the window by windows of at most `days` days. */
  | { readonly act: 'split'; readonly days: number }
  /**
   * Keep the response in this worker and store it again after `delayMs`. `isStoppingCalls`: until it is stored, no worker of
   * this process makes another call, because those responses could not be stored either.
   */
  | { readonly act: 'keep_response'; readonly delayMs: number; readonly isStoppingCalls: boolean }
  /** Put the window back as if it had not been started, because the worker is stopping. */
  | { readonly act: 'put_back' }
  /** End the window without a response, because there is nothing to load for it. */
  | { readonly act: 'skip'; readonly reason: string }
  /** End windows as failed, as blocked by the source, or as skipped because the key may not use what they request. */
  | { readonly act: 'end'; readonly state: 'failed' | 'blocked' | 'skipped'; readonly scope: Scope };

/**
 * Which windows end: this one, with it those of its run that wait and are about older days, the open windows of its run
 * for the operation or exchange, or, with `key`, all of its run, and the other open runs pause.
 */
export type Scope = 'window' | 'older' | 'operation' | 'exchange' | 'key';

/** What is known about the window and the source at the time of a failure. */
export interface Situation {
  /** Number of attempts that counted, including this one. */
  readonly attempt: number;
  /** How often storing the response in hand has failed, this time included; 0 if there is no response. */
  readonly storeFailures: number;
  /** Milliseconds for which the window was postponed so far because its response was not ready. */
  readonly notReadyMs: number;
  /** Number of days of the window if it can be split, otherwise 1. */
  readonly days: number;
  /** True if all of its days are still to come. */
  readonly isAhead: boolean;
  /** Milliseconds since the beginning of the clock hour, by the source's clock if it is known. */
  readonly intoHourMs: number;
  /** Milliseconds until calls may start in the next clock hour. */
  readonly nextHourMs: number;
  /** For how long the run has waited for a source that is down, in milliseconds; null while it responds. */
  readonly outageMs: number | null;
  readonly queue: WindowQueue;
  /** A random number from 0 to 1, so that workers do not come back all at once. */
  readonly chance: number;
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

/** A window that has lost more workers than this fails without another call, because it may be what ends them. */
export const MAX_LOST_WORKERS = 5;

/** Longest pause between counted attempts. */
export const MAX_BACKOFF_MS = 300_000;

/** Longest Retry-After of the source that is followed, unless the run waits for an outage for a shorter time. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/** Longest pause before a response that is not ready is requested again, unless EOD_NOT_READY_WAIT_MS is longer. */
const MAX_NOT_READY_PAUSE_MS = 60_000;

/** Pause before a window is tried again when Postgres could not be reached. */
const DATABASE_PAUSE_MS = 2_000;

/** Longest pause before a response is stored again. */
const MAX_STORE_PAUSE_MS = 30_000;

/** How often workers look whether an hour whose calls are used up has some again: the limit may have been raised. */
const HOUR_RECHECK_MS = 60_000;

/** This many failed calls in a row show that the source is down. */
export const OPENING_FAILURES = 5;

/** While the source is down, all workers together make one call in this time. */
export const OUTAGE_PAUSE_MS = 30_000;

/** While the source is down, workers look this often whether it is time for the next call. */
export const OUTAGE_RECHECK_MS = 5_000;

/** An outage that has lasted this long is an alert. */
export const OUTAGE_ALERT_MS = 60_000;

/** A backfill, which somebody is watching, waits for a source that does not respond for this part of the time only. */
const BACKFILL_SHARE = 60;

/** How long the source may be down before a run of a queue gives up. Unit: milliseconds. */
export function longestOutageMs(config: Pick<Config, 'EOD_OUTAGE_PATIENCE_MS'>, queue: WindowQueue): number {
  return config.EOD_OUTAGE_PATIENCE_MS / (queue === 'nightly' ? 1 : BACKFILL_SHARE);
}

/** How soon a worker looks again whether a response can be stored, or whether the same request was made. */
export const RECHECK_MS = 200;

/**
 * In this time after the beginning of an hour, the source's clock may still be in the hour before. Then a refusal does not
 * close the new hour, and a minute later another call shows whether that has begun.
 */
const HOUR_START_TOLERANCE_MS = 300_000;

/** How long the queue makes no call when those of an hour are used up: until the next one, or until it is checked again. */
export const waitForCallsMs = (nextHourMs: number): number => Math.min(nextHourMs, HOUR_RECHECK_MS);

/** Pause before a counted attempt: doubles up to MAX_BACKOFF_MS, and half of it is random. Unit: milliseconds. */
export function backoffMs(attempt: number, baseMs: number, chance: number): number {
  const full = Math.min(MAX_BACKOFF_MS, baseMs * 2 ** (attempt - 1));
  return Math.round(full / 2 + (full / 2) * chance);
}

/** Each pause is as long as all before it together, so that a slow source is not called hundreds of times. */
function notReadyPauseMs(
  notReadyMs: number,
  { EOD_NOT_READY_WAIT_MS }: Pick<Config, 'EOD_NOT_READY_WAIT_MS'>,
): number {
  return Math.max(EOD_NOT_READY_WAIT_MS, Math.min(MAX_NOT_READY_PAUSE_MS, notReadyMs));
}

/**
 * The average time that the hour's budget allows a worker for each call. A worker waits this long for a response that
 * is being prepared, rather than begin another call: what is not fetched before the calls of the hour are used up has
 * to be requested again.
 */
function msPerCall({
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

const FAIL_OPERATION: FailureAction = { ...FAIL, scope: 'operation' };

const block = (scope: Scope): FailureAction => ({ act: 'end', state: 'blocked', scope });

const leaveOut = (scope: Scope): FailureAction => ({ act: 'end', state: 'skipped', scope });

type Decide = (error: PipelineError, situation: Situation, config: PolicyConfig) => FailureAction;

/** Tries again after a pause while attempts are left. */
const retry: Decide = (error, { attempt, queue, chance }, config) => {
  const { retryAfterMs } = error;
  if (attempt >= attemptsFor(error, config)) return FAIL;
  const longest = Math.min(MAX_RETRY_AFTER_MS, longestOutageMs(config, queue));
  const pause = backoffMs(attempt, config.EOD_BACKOFF_MS, chance);
  return { act: 'retry', delayMs: retryAfterMs === undefined ? pause : Math.min(longest, retryAfterMs) };
};

/** The same, unless the source is down: then waiting is limited by time and not by attempts. */
const retryOrAwaitSource: Decide = (error, situation, config) => {
  const { outageMs, queue } = situation;
  if (outageMs === null || sourceEvidence(error) !== 'failure') return retry(error, situation, config);
  // In all this time no call got a response; but all of them may have been of this operation.
  if (outageMs > longestOutageMs(config, queue)) return FAIL_OPERATION;
  return { act: 'postpone', delayMs: OUTAGE_PAUSE_MS };
};

/** Waits for Postgres: with the response in hand if there is one, so that no call is made twice. */
const awaitDatabase: Decide = (_error, { storeFailures }) =>
  storeFailures === 0
    ? POSTPONE_FOR_DATABASE
    : { act: 'keep_response', delayMs: DATABASE_PAUSE_MS, isStoppingCalls: false };

/** The same for a Postgres that lets windows be claimed and does not take their responses. */
const awaitStorage: Decide = (error, situation, config) => {
  const { storeFailures, chance } = situation;
  if (storeFailures === 0) return awaitDatabase(error, situation, config);
  const delayMs = Math.min(MAX_STORE_PAUSE_MS, backoffMs(storeFailures, config.EOD_BACKOFF_MS, chance));
  return { act: 'keep_response', delayMs, isStoppingCalls: true };
};

/** Tries EOD_ATTEMPTS times to store the response in hand; nothing is requested again. */
const retryWithResponse: Decide = (_error, { storeFailures, chance }, config) => {
  if (storeFailures === 0 || storeFailures >= config.EOD_ATTEMPTS) return FAIL;
  const delayMs = backoffMs(storeFailures, config.EOD_BACKOFF_MS, chance);
  return { act: 'keep_response', delayMs, isStoppingCalls: false };
};

/**
 * The rules for HTTP statuses; the first that fits applies. (401 is not among them: the key is refused.) `example` is
 * the status that the generated table is made with.
 */
export const STATUS_RULES: readonly {
  readonly statuses: string;
  readonly example: number;
  readonly fits: (status: number) => boolean;
  /** The maximum number of attempts, if EOD_ATTEMPTS is larger. */
  readonly attempts: number;
  /**
   * `failure`: several in a row show that the source is down, and while the source is down `attempts` does not apply. `success`:
   * the source has responded, and `attempts` always applies.
   */
  readonly source: Evidence['source'];
}[] = [
  {
    statuses: 'HTTP status 408, 425 or 429',
    example: 429,
    fits: (status) => status === 408 || status === 425 || status === 429,
    attempts: Number.POSITIVE_INFINITY,
    source: 'failure',
  },
  {
    statuses: 'HTTP status 5xx',
    example: 503,
    fits: (status) => status >= 500,
    attempts: Number.POSITIVE_INFINITY,
    source: 'failure',
  },
  { statuses: 'any other HTTP status', example: 404, fits: () => true, attempts: 1, source: 'success' },
];

/** The rule for an error of kind `http_status`; undefined for any other. */
function statusRule(error: PipelineError) {
  return error.kind === 'http_status' ? STATUS_RULES.find(({ fits }) => fits(error.status)) : undefined;
}

/**
 * Maximum number of attempts. A failed connection may be the beginning of an outage, which is known only after some
 * calls: until then no window is given up, even if EOD_ATTEMPTS is smaller. An unknown line may mean that
 * the request is wrong, and a response that is not HTTP that the address is, which no further attempt would change.
 */
function attemptsFor(error: PipelineError, { EOD_ATTEMPTS }: PolicyConfig): number {
  if (error.kind === 'network' && !error.cutShort) return Math.max(EOD_ATTEMPTS, OPENING_FAILURES);
  const mayBeWrong = error.kind === 'unknown_diagnostic' || error.kind === 'wrong_address';
  const most = mayBeWrong ? 3 : statusRule(error)?.attempts;
  return Math.min(EOD_ATTEMPTS, most ?? EOD_ATTEMPTS);
}

const half = (days: number) => Math.ceil(days / 2);

interface Rule {
  readonly decide: Decide;
  /** What the failed call shows about the source: whether it responded. */
  readonly source: Evidence['source'];
  /** What it shows about the access key. */
  readonly key: Evidence['key'];
}

const RULES: Readonly<Record<ErrorKind, Rule>> = {
  credential: { decide: () => block('key'), source: 'success', key: 'refused' },
  monthly_quota: { decide: () => block('key'), source: 'success', key: 'accepted' },
  hourly_quota: {
    decide: (_error, { intoHourMs, nextHourMs }) => ({
      act: 'rate_limit',
      delayMs: waitForCallsMs(nextHourMs),
      isHourClosed: intoHourMs >= HOUR_START_TOLERANCE_MS,
    }),
    source: 'success',
    key: 'accepted',
  },
  not_ready: {
    decide: (_error, { notReadyMs }, config) => {
      const leftMs = config.EOD_NOT_READY_BUDGET_MS - notReadyMs;
      if (leftMs <= 0) return FAIL;
      const delayMs = Math.min(leftMs, notReadyPauseMs(notReadyMs, config));
      return { act: 'await_data', delayMs, isWaitedInWorker: delayMs <= msPerCall(config) };
    },
    source: 'success',
    key: 'accepted',
  },
  no_data: { decide: () => FAIL, source: 'success', key: 'accepted' },
  operation_blocked: { decide: () => leaveOut('operation'), source: 'success', key: 'accepted' },
  exchange_blocked: { decide: () => leaveOut('exchange'), source: 'success', key: 'accepted' },
  instrument_blocked: { decide: () => block('window'), source: 'success', key: 'accepted' },
  range_refused: {
    // The range is too long or too far back; the line does not say which, and a limit that it names may be wrong. The
    // responses to shorter ranges will show it.
    decide: ({ limitDays = 0 }, { days, isAhead }) => {
      const isLimitKnown = limitDays >= 1 && limitDays < days;
      // Of days to come the source may know none; shorter ranges of them would be refused one by one.
      if (isAhead && !isLimitKnown) return { act: 'skip', reason: 'the source does not serve days to come' };
      if (days <= 1) return block('older');
      return { act: 'split', days: isLimitKnown ? limitDays : half(days) };
    },
    source: 'success',
    key: 'accepted',
  },
  bad_request: { decide: () => FAIL, source: 'success', key: 'accepted' },
  unknown_diagnostic: { decide: retry, source: 'success', key: 'unknown' },
  timeout: { decide: retryOrAwaitSource, source: 'failure', key: 'unknown' },
  network: { decide: retryOrAwaitSource, source: 'failure', key: 'unknown' },
  wrong_address: {
    // The setting is wrong for all calls. Those of other operations fail on their own, unless the fault was temporary.
    decide: (error, situation, config) => {
      const next = retry(error, situation, config);
      return next === FAIL ? FAIL_OPERATION : next;
    },
    source: 'unknown',
    key: 'unknown',
  },
  http_status: { decide: retryOrAwaitSource, source: 'failure', key: 'unknown' },
  too_large: { decide: () => FAIL, source: 'success', key: 'unknown' },
  unreadable: { decide: retry, source: 'success', key: 'unknown' },
  database_unreachable: { decide: awaitDatabase, source: 'unknown', key: 'unknown' },
  database_cannot_store: { decide: awaitStorage, source: 'unknown', key: 'unknown' },
  database_locked: { decide: awaitDatabase, source: 'unknown', key: 'unknown' },
  database: { decide: () => FAIL, source: 'unknown', key: 'unknown' },
  defect: { decide: retryWithResponse, source: 'unknown', key: 'unknown' },
  usage: { decide: () => FAIL, source: 'unknown', key: 'unknown' },
  aborted: { decide: () => PUT_BACK, source: 'unknown', key: 'unknown' },
};

/** True if the response to a shorter range may arrive in full. */
function shorterRangeMayHelp({ kind, cutShort }: PipelineError): boolean {
  return cutShort === true || kind === 'too_large' || kind === 'timeout';
}

/** Decides what is done about anything that was thrown during the work on a window. */
export function decideFailure(error: unknown, situation: Situation, config: PolicyConfig): FailureAction {
  const failure = databaseError(error);
  if (situation.days > 1 && shorterRangeMayHelp(failure)) return { act: 'split', days: half(situation.days) };
  return RULES[failure.kind].decide(failure, situation, config);
}

/**
 * Decides the same for work without calls to the source: loading a file or a kept response, planning the run of a tick,
 * storing the result of a failure. It fails for good, unless Postgres is unreachable or cannot store, or the process is
 * stopping: then it is done later.
 */
export function decideLocalFailure(
  error: unknown,
): Extract<FailureAction, { act: 'postpone' | 'put_back' | 'end' }> {
  switch (databaseError(error).kind) {
    case 'database_unreachable':
    case 'database_cannot_store':
    case 'database_locked':
      return POSTPONE_FOR_DATABASE;
    case 'aborted':
      return PUT_BACK;
    default:
      return FAIL;
  }
}

/** What a failed call shows besides its own failure. */
interface Evidence {
  /** Whether the source responded. */
  readonly source: 'success' | 'failure' | 'unknown';
  /** Whether it accepted the access key. */
  readonly key: 'accepted' | 'refused' | 'unknown';
}

/**
 * What a failed call to the source shows about the source and the key.
 *
 * @param days as in `Situation`.
 */
export function assessEvidence(error: unknown, days: number): Evidence {
  if (!(error instanceof PipelineError)) return { source: 'unknown', key: 'unknown' };
  const { key } = RULES[error.kind];
  return {
    // The source may serve a shorter range in time.
    source: error.kind === 'timeout' && days > 1 ? 'unknown' : sourceEvidence(error),
    // A key is taken as accepted only if the source sent a diagnostic line, which is not one that refuses the key.
    key: key === 'accepted' && error.diagnostic === undefined ? 'unknown' : key,
  };
}

/** Whether the source responded to a failed call. Half a response is a response. */
function sourceEvidence(error: PipelineError): Evidence['source'] {
  const source = statusRule(error)?.source ?? RULES[error.kind].source;
  return source === 'failure' && error.cutShort ? 'success' : source;
}

/** The error message, and the source's line if there is one, to store with a window. */
export function failureInfo(error: unknown): FailureInfo {
  const { message, diagnostic } = databaseError(error);
  return { error: message, ...(diagnostic === undefined ? {} : { diagnostic }) };
}
