import { DrizzleQueryError } from 'drizzle-orm';
import { type ErrorKind, errorCode, isLostConnection, messageOf, PipelineError } from '../core/errors.ts';

/** Classes of SQLSTATE after which the same transaction may succeed: connection, rollback, operator intervention. */
const TRANSIENT_CLASSES = ['08', '40', '57'];
/** A statement in a failed transaction; a transaction that was idle for too long; no connection is left. */
const TRANSIENT_CODES = ['25P02', '25P03', '53300'];

/** Classes of SQLSTATE of a server that has run out of something (disk, memory, locks), or whose files fail. */
const CANNOT_STORE_CLASSES = ['53', '58'];

/**
 * A prepared statement exists already, or does not: each connection knows which it has prepared, so its session is not
 * its own any more. A pooler that begins to share sessions is recognized by this.
 */
const NOT_OUR_SESSION = ['42P05', '26000'];

/** Why a pooler that shares sessions cannot be used, and what to do about it. */
export const SHARED_SESSIONS = {
  reason:
    'a pooler there gives each transaction another session; locks, temporary tables and prepared statements are lost between them',
  remedy: 'set pool_mode = session in it, or connect to Postgres itself',
} as const;

/** The server is read-only: a standby, or the primary before a failover. */
export const READ_ONLY = '25006';

/** A statement that took longer than the session allows, or that was cancelled: a retry would take as long. */
export const CANCELED = '57014';

/** A lock could not be taken within lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Socket errors of a server that became unreachable or is not there yet. ENOTFOUND is among them, because the name of a
 * container that has not been started is not found either.
 */
const SOCKET_CODES = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
];

/** True if this is the code of a connection that failed and may succeed a moment later. */
export function isSocketError(code: string): boolean {
  return SOCKET_CODES.includes(code);
}

/**
 * What was thrown, as a PipelineError. Errors of Postgres are classified by SQLSTATE, those of connections by the code
 * of the socket; only broken connections for which node-postgres has no code are recognized by their messages. What is
 * neither is a defect.
 */
export function databaseError(error: unknown): PipelineError {
  // Drizzle wraps what the driver threw, and quotes the whole statement.
  const cause = error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  if (cause instanceof PipelineError) return cause;
  const code = errorCode(cause);
  const kind =
    code !== undefined ? kindOfCode(code) : isLostConnection(cause) ? 'database_unreachable' : 'defect';
  const state = code === undefined ? '' : ` (${code})`;
  const message = NOT_OUR_SESSION.includes(code ?? '')
    ? `${SHARED_SESSIONS.reason}; ${SHARED_SESSIONS.remedy}`
    : messageOf(cause) || 'no connection';
  return new PipelineError(kind === 'defect' ? message : `Postgres: ${message}${state}`, { kind, cause });
}

function kindOfCode(code: string): Extract<ErrorKind, `database${string}`> {
  if (code === LOCK_NOT_AVAILABLE) return 'database_locked';
  if (code === CANCELED) return 'database';
  const sqlClass = code.slice(0, 2);
  if (isSocketError(code) || TRANSIENT_CODES.includes(code) || TRANSIENT_CLASSES.includes(sqlClass))
    return 'database_unreachable';
  return code === READ_ONLY || NOT_OUR_SESSION.includes(code) || CANNOT_STORE_CLASSES.includes(sqlClass)
    ? 'database_cannot_store'
    : 'database';
}

/** True if a statement took longer than it may, or was cancelled. */
export const isCanceled = (error: unknown): boolean => errorCode(databaseError(error).cause) === CANCELED;

/** True if a pooler has given our connection the session of another one. */
export const isSharedSession = (error: unknown): boolean =>
  NOT_OUR_SESSION.includes(errorCode(databaseError(error).cause) ?? '');
