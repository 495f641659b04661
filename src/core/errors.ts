/** What a diagnostic line of the source may say. */
export type DiagnosedKind =
  /** The access key was refused: no further call may be made with it. */
  | 'credential'
  /** The monthly allowance is used up: the remaining windows of every run are blocked. */
  | 'monthly_quota'
  /** The hourly allowance is used up: wait for the next clock hour. */
  | 'hourly_quota'
  /** The source is still preparing the response: the same request is to be made again soon. */
  | 'not_ready'
  /** The source says that it has no data; where the status of its response is 200, that is an empty response. */
  | 'no_data'
  /** The key may not use this operation. */
  | 'operation_blocked'
  /** The key may not use this exchange. */
  | 'exchange_blocked'
  /** The key may not use this instrument (trial keys). */
  | 'instrument_blocked'
  /** The requested range is longer, or further back, than the source allows; see `limitDays`. */
  | 'range_refused'
  /** The source refuses the request itself: a defect or a wrong option, never retried. */
  | 'bad_request'
  /** The response is text that is neither data nor a known diagnostic line. */
  | 'unknown_diagnostic';

/**
 * What went wrong, for code to act on; only people read the message. jobs/policy/failure-policy.ts decides what is
 * done about each kind.
 */
export type ErrorKind =
  | DiagnosedKind
  /** No complete response in time. */
  | 'timeout'
  /** The connection was refused or reset, or TLS failed. */
  | 'network'
  /** The server at the address does not speak HTTP, or not TLS where the address says so, or the reverse. */
  | 'wrong_address'
  /** An HTTP status other than 200. */
  | 'http_status'
  /** The response is larger than EOD_MAX_RESPONSE_MB, or would take too much of the heap. */
  | 'too_large'
  /** The response should be data and cannot be read as such (half a JSON document, broken gzip). */
  | 'unreadable'
  /** Postgres cannot be reached, or failed a statement that may succeed a moment later. */
  | 'database_unreachable'
  /** Postgres is there and cannot store: its disk is full, its memory used up, a file broken, or it is read-only. */
  | 'database_cannot_store'
  /** Another session has held a lock for longer than we wait; the message names it. */
  | 'database_locked'
  /** Postgres refused a statement, and would refuse it again. */
  | 'database'
  /** Something else was thrown: a mistake in this code. */
  | 'defect'
  /** A setting or the command line is wrong: exit code 2. */
  | 'usage'
  /** The work was interrupted, e.g. by Ctrl-C. */
  | 'aborted';

/** The command that helps with an error of kind `usage`; the command line knows its name and words the hint. */
export type Remedy =
  | 'list_commands'
  | 'import_unreleased'
  | 'delete_demo'
  | 'list_runs'
  | 'list_operations'
  | 'resume'
  | 'migrate'
  | 'import_files';

/** What an error may have besides its message. */
interface Facts {
  /** The source's own line, at most 500 characters. */
  readonly diagnostic?: string;
  /** The longest range in days, if the source named one. */
  readonly limitDays?: number | undefined;
  /** The HTTP status. */
  readonly status: number;
  /** The source requested this pause before the next try. */
  readonly retryAfterMs?: number;
  /** The response began and broke off; that of a shorter range may arrive in full. */
  readonly cutShort?: boolean;
  /** The request did not reach the source, so it is no call. */
  readonly isUnsent?: boolean;
  /** The body of a response that turned out to be unreadable as soon as it came. */
  readonly response?: Buffer;
  /** What names the form of a file of no known format; in an archive, such a file is ignored if others have one. */
  readonly unknownForm?: string | undefined;
  readonly remedy?: Remedy;
}

/** Which of these an error of a kind has; of the kinds that are not listed, none. */
interface FactNames extends Record<Exclude<DiagnosedKind, 'range_refused'>, 'diagnostic'> {
  range_refused: 'diagnostic' | 'limitDays';
  timeout: 'isUnsent';
  network: 'isUnsent' | 'cutShort';
  wrong_address: 'isUnsent';
  http_status: 'status' | 'retryAfterMs';
  unreadable: 'cutShort' | 'response' | 'unknownForm';
  usage: 'remedy';
}

type FactsOf<Kind extends ErrorKind> = Kind extends keyof FactNames ? FactNames[Kind] : never;

/** An error's kind, and what it has: no fact of another kind. */
export type ErrorFacts<Kind extends ErrorKind = ErrorKind> = {
  [Each in Kind]: { readonly kind: Each; readonly cause?: unknown } & Pick<Facts, FactsOf<Each>> & {
      readonly [Name in Exclude<keyof Facts, FactsOf<Each>>]?: undefined;
    };
}[Kind];

/** The error of the pipeline, a union on `kind`: people read the message, a sentence; code reads the other members. */
export type PipelineError<Kind extends ErrorKind = ErrorKind> = Error & ErrorFacts<Kind>;

/** The class of these errors, which gives each kind its facts. */
interface PipelineErrorClass {
  new <const Facts extends ErrorFacts>(message: string, facts: Facts): PipelineError<Facts['kind']>;
  [Symbol.hasInstance](thrown: unknown): thrown is PipelineError;
}

// The members that the constructor assigns are the facts, which a class cannot say.
export const PipelineError = class PipelineError extends Error {
  constructor(message: string, { cause, ...facts }: ErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, { name: 'PipelineError' }, facts);
  }
} as unknown as PipelineErrorClass;

/** True for an error of the pipeline of one of these kinds. */
export const isPipelineError = <Kind extends ErrorKind>(
  thrown: unknown,
  ...kinds: readonly Kind[]
): thrown is PipelineError<Kind> =>
  thrown instanceof PipelineError && kinds.some((kind) => kind === thrown.kind);

/** An error in the command line or the settings: exit code 2. */
export function usageError(message: string, remedy?: Remedy): PipelineError {
  return new PipelineError(message, {
    kind: 'usage',
    ...(remedy === undefined ? {} : { remedy }),
  });
}

export function unknownRunError(runId: number): PipelineError {
  return usageError(`there is no run ${runId}`, 'list_runs');
}

/** Messages for common errors of files and ports; Node's own have the code and the system call. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EADDRINUSE: 'another process uses this port',
  EADDRNOTAVAIL: 'this machine does not have this address',
  EEXIST: 'it exists already',
  EISDIR: 'it is a folder',
  EMFILE: 'this process has too many files open',
  ENOENT: 'there is no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'part of the path is not a folder',
  EROFS: 'the disk cannot be written to',
};

/** The message of anything that was thrown, without a stack; of what Node says of files and ports, in plain words. */
export function messageOf(error: unknown): string {
  return systemProblem(error) ?? (error instanceof Error ? error.message : String(error));
}

/** What went wrong with a file or a port, without its name, which the caller knows; null for any other error. */
function systemProblem(error: unknown): string | null {
  return readMember(error, 'syscall') === undefined ? null : (SYSTEM_ERRORS[errorCode(error) ?? ''] ?? null);
}

/** A member of anything that was thrown; undefined if it has none of this name. */
export const readMember = (thrown: unknown, name: string): unknown =>
  typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, name) : undefined;

/** The code of an error of Node (`ENOENT`), of Postgres (SQLSTATE) or of a library; undefined if it has none. */
export function errorCode(error: unknown): string | undefined {
  const code = readMember(error, 'code');
  return typeof code === 'string' ? code : undefined;
}

/** Messages of node-postgres about a connection that broke or could not be made; these errors have no code. */
const LOST_CONNECTION =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool after calling end|Client (has encountered a connection error|was closed) and is not queryable)/;

/** True if this is an error of node-postgres about a lost connection that has no code. */
export function isLostConnection(error: unknown): boolean {
  return error instanceof Error && LOST_CONNECTION.test(error.message);
}

/**
 * Matches the diagnostic line with which the source refuses a range of days. A regular expression of Postgres, because
 * completeness reports use it to recognize the days that the source no longer has.
 */
export const RANGE_REFUSED_LINE = '(dates?|from\\W+to)\\W.*out of .*allowed range';

/** True if a window failed because its days are too old for the source, so that no other request can help. */
export const isTooOld = (failure: string | null): boolean =>
  new RegExp(RANGE_REFUSED_LINE, 'i').test(failure ?? '');

/** @throws PipelineError `aborted` after a signal to stop. */
export function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new PipelineError('stopped by a signal', { kind: 'aborted' });
}
