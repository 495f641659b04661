import { PipelineError } from '../core/errors.ts';

/** Classes of SQLSTATE after which the same transaction may succeed. */
const PASSING = ['08', '40', '53', '57', '58'];
const PASSING_CODES = ['55P03', '25P02', '25P03'];

/** Socket errors of node-postgres: the server went away or is not there yet. */
const SOCKET_CODES = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'];

/**
 * A Postgres error as one of ours, by SQLSTATE and never by message (house rule 2). Errors that
 * come without a code are broken connections: node-postgres raises those as plain errors.
 */
export function databaseError(error: unknown): PipelineError {
  if (error instanceof PipelineError) return error;
  const code = (error as { code?: unknown }).code;
  const message = error instanceof Error ? error.message : String(error);
  const retryable =
    typeof code !== 'string' ||
    SOCKET_CODES.includes(code) ||
    PASSING.includes(code.slice(0, 2)) ||
    PASSING_CODES.includes(code);
  const state = typeof code === 'string' ? ` (${code})` : '';
  return new PipelineError(`Postgres: ${message}${state}`, { kind: 'database', retryable, cause: error });
}
