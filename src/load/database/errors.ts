import { DrizzleQueryError } from 'drizzle-orm';
import { messageOf, PipelineError } from '../../core/errors.ts';

/** Classes of SQLSTATE after which the same transaction may succeed. */
const PASSING = ['08', '40', '53', '57', '58'];
const PASSING_CODES = ['55P03', '25P02', '25P03'];

/**
 * Socket errors of a server that went away or is not there yet. The name of a container that has not
 * been started is not found either: so that is no proof of a wrong name.
 */
const SOCKET_CODES = [
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN'],
];

/** May a connection that failed with this code succeed a moment later? */
export function isSocketTrouble(code: string): boolean {
  return SOCKET_CODES.includes(code);
}

/**
 * A Postgres error as one of ours, by SQLSTATE and never by message (house rule 2). Errors that
 * come without a code are broken connections: node-postgres raises those as plain errors. A special
 * error without a code is a defect, and would come again however often it is tried.
 */
export function databaseError(error: unknown): PipelineError {
  if (error instanceof PipelineError) return error;
  // Drizzle wraps what the driver threw, and quotes the whole statement.
  const cause = error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  const code = (cause as { code?: unknown }).code;
  const retryable =
    typeof code === 'string'
      ? isSocketTrouble(code) || PASSING.includes(code.slice(0, 2)) || PASSING_CODES.includes(code)
      : cause instanceof Error && cause.constructor === Error;
  const state = typeof code === 'string' ? ` (${code})` : '';
  return new PipelineError(`Postgres: ${messageOf(cause) || 'no connection'}${state}`, {
    ...{ kind: 'database', retryable, cause },
  });
}
