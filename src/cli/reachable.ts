import { Redis } from 'ioredis';
import pg from 'pg';
import { messageOf, usageError } from '../core/errors.ts';

const WITHIN_MS = 5_000;

/**
 * Asks Postgres for a sign of life, so that a wrong address is told at once and not after retries.
 *
 * @throws PipelineError `usage` that names the server, never the password.
 */
export async function checkPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: WITHIN_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw usageError(`cannot use Postgres at ${placeOf(url)}: ${reasonOf(error)} (see DATABASE_URL)`);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The same for Redis: BullMQ itself would wait for it forever. */
export async function checkRedis(url: string): Promise<void> {
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
    await client.ping();
  } catch (error) {
    throw usageError(`cannot use Redis at ${placeOf(url)}: ${reasonOf(last ?? error)} (see REDIS_URL)`);
  } finally {
    client.disconnect();
  }
}

/** Host, port and database of an address, without user and password. */
function placeOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host === '' ? 'the default host' : host}${pathname === '/' ? '' : pathname}`;
}

/** Node leaves the message empty where several addresses of a name were tried in vain. */
function reasonOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return messageOf(error) || (typeof code === 'string' ? code : 'no connection');
}
