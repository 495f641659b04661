import { DrizzleQueryError } from 'drizzle-orm';
import { messageOf, PipelineError } from '../../core/errors.ts';

/**
 * Classes of SQLSTATE after which the same transaction may succeed: connection, rollback, resources,
 * operator intervention, system.
 */
const TRANSIENT_CLASSES = ['08', '40', '53', '57', '58'];
/** A statement in a failed transaction; a transaction that was idle for too long. */
const TRANSIENT_CODES = ['25P02', '25P03'];

/** A statement that took longer than the session allows, or that was cancelled: a retry would take as long. */
const CANCELED = '57014';

/** A lock could not be taken within lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Socket errors of a server that went away or is not there yet. ENOTFOUND is among them, because the name of a
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

/** Is this the code of a connection that failed and may succeed a moment later? */
export function isSocketError(code: string): boolean {
  return SOCKET_CODES.includes(code);
}

/**
 * A Postgres error as a PipelineError, classified by SQLSTATE and never by its message. A plain Error without a code is
 * a broken connection: node-postgres raises those. Any other class of error without a code (a TypeError, say) is a
 * defect, which a retry would only repeat.
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
