import type { Redis } from 'ioredis';
import { messageOf, usageError } from '../core/errors.ts';
import type { Database } from '../postgres/database.ts';
import { databaseError, isSocketError, SHARED_SESSIONS } from '../postgres/database-errors.ts';
import { sharesSessions } from '../postgres/pooler.ts';
import { inSeconds, pauseBeforeRetry, type RetryOptions } from '../postgres/retry.ts';

const WITHIN_MS = 5_000;

/** Why a server cannot be used, and whether trying again may help. */
interface ConnectFailure {
  readonly reason: string;
  readonly retryable: boolean;
}

/**
 * Opens a first connection, so that a wrong address is reported at once. Waits for a server that cannot be reached yet,
 * but not for one that refuses the login.
 *
 * @throws PipelineError `usage` that names the server but not the password; `aborted` on the signal.
 */
export async function checkPostgres({ url, withoutRetry }: Database, retry: RetryOptions): Promise<void> {
  await waitForServer(`Postgres at ${describeLocation(url)}`, 'DATABASE_URL', retry, async () => {
    try {
      if (!(await sharesSessions(withoutRetry.pool))) return null;
      return { reason: `${SHARED_SESSIONS.reason}; ${SHARED_SESSIONS.remedy}`, retryable: false };
    } catch (error) {
      const { kind, cause } = databaseError(error);
      return { reason: describeFailure(cause), retryable: kind === 'database_unreachable' };
    }
  });
}

/** Does the same for Redis, for which BullMQ would wait forever. */
export async function checkRedis(url: string, retry: RetryOptions): Promise<void> {
  await waitForServer(`Redis at ${describeLocation(url)}`, 'REDIS_URL', retry, async () => {
    try {
      await queryRedis(url, (client) => client.ping());
      return null;
    } catch (error) {
      return { reason: describeFailure(error), retryable: isRedisRetryable(error) };
    }
  });
}

/**
 * Runs commands on a Redis connection of its own. @throws the error of the connection or server; both have 5 s to
 * respond.
 */
async function queryRedis<T>(url: string, query: (client: Redis) => Promise<T>): Promise<T> {
  const { Redis } = await import('ioredis');
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: WITHIN_MS,
    commandTimeout: WITHIN_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let last: unknown;
  client.on('error', (error) => {
    last = error;
  });
  try {
    await client.connect();
    return await query(client);
  } catch (error) {
    throw last ?? error;
  } finally {
    client.disconnect();
  }
}

/** Reads what Redis says about itself. @throws as `queryRedis` does. */
export async function readRedisFacts(url: string) {
  return queryRedis(url, async (client) => {
    const info = new Map(
      (await client.info()).split(/\r?\n/).map((line) => line.split(/:(.*)/).slice(0, 2) as [string, string]),
    );
    return {
      version: info.get('redis_version') ?? '0',
      /** Bytes it may use; 0 for no limit. */
      maxMemory: Number(info.get('maxmemory') ?? 0),
      evictionPolicy: info.get('maxmemory_policy') ?? 'unknown',
      isReplica: info.get('role') === 'slave',
    };
  });
}

async function waitForServer(
  server: string,
  setting: string,
  { forMs, signal, onRetry }: RetryOptions,
  connect: () => Promise<ConnectFailure | null>,
): Promise<void> {
  const until = Date.now() + forMs;
  for (let isReported = false; ; isReported = true) {
    const failure = await connect();
    if (failure === null) return;
    const why = `${server}: ${failure.reason} (see ${setting})`;
    if (!failure.retryable || Date.now() >= until) throw usageError(`cannot use ${why}`);
    if (!isReported) onRetry(`waiting up to ${inSeconds(forMs)} for ${why}`);
    await pauseBeforeRetry(signal);
  }
}

/**
 * Trying again helps if the connection failed, or while Redis loads its data from disk; other errors that Redis
 * responds with are permanent.
 */
function isRedisRetryable(error: unknown): boolean {
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return isSocketError(code);
  return name !== 'ReplyError' || messageOf(error).startsWith('LOADING ');
}

/** Host, port and database of an address, without user and password. */
export function describeLocation(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host === '' ? 'the default host' : host}${pathname === '/' ? '' : pathname}`;
}

/** The message of an error. Node leaves it empty when several addresses of a host name were tried in vain. */
export function describeFailure(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return messageOf(error) || (typeof code === 'string' ? code : 'no connection');
}
