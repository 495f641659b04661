/**
 * What went wrong, for code to act on; the message is for people only. What is done about each kind is decided by
 * jobs/worker/failure-policy.ts.
 */
export type ErrorKind =
  /** The access key was refused: no further call may be made with it. */
  | 'credential'
  /** The monthly allowance is used up: what is left of every run is blocked. */
  | 'monthly_quota'
  /** The hourly allowance is used up: wait for the next clock hour. */
  | 'hourly_quota'
  /** The source is still preparing the answer: ask the same again soon. */
  | 'not_ready'
  /** The key has no right to this operation. */
  | 'operation_blocked'
  /** The key has no right to this exchange. */
  | 'exchange_blocked'
  /** The key has no right to this instrument (trial keys). */
  | 'instrument_blocked'
  /** The asked range is wider, or further back, than the source allows; see `limitDays`. */
  | 'range_refused'
  /** We sent something the source refuses: a defect or a wrong option, never retried. */
  | 'bad_request'
  /** Text that is neither data nor a known diagnostic line. */
  | 'unknown_diagnostic'
  /** No answer in time. */
  | 'timeout'
  /** The connection was refused or reset, or TLS failed. */
  | 'network'
  /** An HTTP status other than 200. */
  | 'http_status'
  /** The answer is larger than the cap. */
  | 'too_large'
  /** The answer claims to be data and cannot be read as such (half a JSON, broken gzip). */
  | 'unreadable'
  /** Postgres cannot be reached, or did not run a statement that it may run a moment later. */
  | 'database_away'
  /** Another session has held a lock for longer than we wait; the message names it. */
  | 'database_locked'
  /** Postgres refused a statement, and would refuse it again. */
  | 'database'
  /** Setting or command line is wrong: exit code 2. */
  | 'usage'
  /** The work was called off (Ctrl-C, cancel). */
  | 'aborted';

/** What helps against an error of `usage`: a look at what there is, a rebuild of tables, or their migration. */
export type Remedy = 'list_commands' | 'list_runs' | 'list_operations' | 'rebuild' | 'migrate';

export interface ErrorFacts {
  readonly kind: ErrorKind;
  /** For `http_status`: the status. */
  readonly status?: number;
  /** The source asked for this pause before the next try. */
  readonly retryAfterMs?: number;
  /** The source's own line, at most 500 characters. */
  readonly diagnostic?: string;
  /** For `range_refused`: the longest range in days the source named, if it named one. */
  readonly limitDays?: number;
  /** The answer began and broke off; for a shorter range it may come whole. */
  readonly cutShort?: boolean;
  /** The file is of no known format: in an archive it is left out beside files of known ones. */
  readonly unknownFormat?: boolean;
  /** For `usage`: what would help. The command line words it, because only that knows its commands. */
  readonly remedy?: Remedy;
  readonly cause?: unknown;
}

/** The one error class of the pipeline: a sentence for people, facts for code. */
export class PipelineError extends Error implements ErrorFacts {
  readonly kind: ErrorKind;
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly diagnostic?: string;
  readonly limitDays?: number;
  readonly cutShort: boolean;
  readonly unknownFormat?: boolean;
  readonly remedy?: Remedy;

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'PipelineError';
    this.kind = facts.kind;
    this.cutShort = facts.cutShort ?? false;
    if (facts.status !== undefined) this.status = facts.status;
    if (facts.retryAfterMs !== undefined) this.retryAfterMs = facts.retryAfterMs;
    if (facts.diagnostic !== undefined) this.diagnostic = facts.diagnostic;
    if (facts.limitDays !== undefined) this.limitDays = facts.limitDays;
    if (facts.unknownFormat !== undefined) this.unknownFormat = facts.unknownFormat;
    if (facts.remedy !== undefined) this.remedy = facts.remedy;
  }
}

/** An error for whoever typed the command or wrote the settings: exit code 2. */
export function usageError(message: string, remedy?: Remedy): PipelineError {
  return new PipelineError(message, {
    kind: 'usage',
    ...(remedy === undefined ? {} : { remedy }),
  });
}

/** An error for whoever named a run that does not exist. */
export function unknownRunError(runId: number): PipelineError {
  return usageError(`there is no run ${runId}`, 'list_runs');
}

/** Message of anything thrown, without a stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * The line with which the source refuses a range of days, as a regular expression of Postgres: completeness knows by
 * it the days that lie beyond the source's reach.
 */
export const RANGE_REFUSED_LINE = '(dates?|from\\W+to)\\W.*out of .*allowed range';
