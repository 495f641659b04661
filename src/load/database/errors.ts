import { DrizzleQueryError } from 'drizzle-orm';
import { messageOf, PipelineError } from '../../core/errors.ts';

/**
 * Classes of SQLSTATE after which the same transaction may succeed: connection, rollback, resources,
 * operator intervention, system.
 */
const TRANSIENT_CLASSES = ['08', '40', '53', '57', '58'];
/** In a failed transaction, idle for too long in a transaction. */
const TRANSIENT_CODES = ['25P02', '25P03'];

/** A statement that took longer than the session allows, or that an administrator ended: it would again. */
const CANCELED = '57014';

/** A lock was not to be had within lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Socket errors of a server that went away or is not there yet. The name of a container that has not
 * been started is not found either: so that is no proof of a wrong name.
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

/** Is this the code of a connection that failed and may succeed a moment later? */
export function isSocketError(code: string): boolean {
  return SOCKET_CODES.includes(code);
}

/**
 * A Postgres error as a PipelineError, classified by SQLSTATE and never by its message. Errors that come
 * without a code are broken connections: node-postgres raises those as plain errors. An error of a class
 * of its own without a code is a defect, and would come again however often it is tried.
 */
export function databaseError(error: unknown): PipelineError {
  // Drizzle wraps what the driver threw, and quotes the whole statement.
  const cause = error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  if (cause instanceof PipelineError) return cause;
  const code = (cause as { code?: unknown } | null | undefined)?.code;
  const away =
    typeof code === 'string'
      ? isSocketError(code) || isTransient(code)
      : cause instanceof Error && cause.constructor === Error;
  const locked = code === LOCK_NOT_AVAILABLE;
  const state = typeof code === 'string' ? ` (${code})` : '';
  return new PipelineError(`Postgres: ${messageOf(cause) || 'no connection'}${state}`, {
    kind: locked ? 'database_locked' : away ? 'database_away' : 'database',
    cause,
  });
}

function isTransient(sqlState: string): boolean {
  if (sqlState === CANCELED) return false;
  return TRANSIENT_CLASSES.includes(sqlState.slice(0, 2)) || TRANSIENT_CODES.includes(sqlState);
}
