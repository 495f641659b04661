import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import type { Logger } from '../../core/log.ts';
import { createRetry, type Retry, type RetryOptions } from './retry.ts';

/**
 * Connections to Postgres. Opened with `retry`, every single statement on `pool` and `drizzle` and every
 * whole `transaction()` is repeated while Postgres is away. The answer to a statement or a commit may be
 * what got lost, so all of them must be safe to repeat: rows are inserted under reserved numbers or
 * `on conflict`, and updates name the state they start from.
 */
export interface Database {
  readonly url: string;
  /** For single statements, and for connections a caller holds; the latter are never repeated. */
  readonly pool: pg.Pool;
  readonly drizzle: NodePgDatabase;
  /**
   * The same connections without retry, for callers that have their own answer to an outage: workers put a
   * window off, health checks report it.
   */
  readonly withoutRetry: Database;
  /** Repeats a longer piece of work as a whole; its statements are not repeated one by one as well. */
  withRetry<T>(work: (database: Database) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

interface DatabaseOptions {
  readonly url: string;
  /** Connections at most; a worker needs one per window in flight and one to spare. */
  readonly connections?: number;
  readonly log?: Logger;
  /** Without it nothing is retried. */
  readonly retry?: RetryOptions;
}

/** Opens a pool; connects when first used. */
export function openDatabase({ url, connections = 5, log, retry }: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: 'eod',
    connectionTimeoutMillis: 15_000,
    // Days and moments are read as Postgres writes them, which a database may have changed.
    onConnect: async (client) => {
      await client.query("set datestyle to 'ISO'");
    },
  });
  let closing = false;
  // An idle connection that breaks (server restart) is replaced at the next use; without a
  // listener it would end the process. While we close, a server that stops first is expected.
  pool.on('error', (error) => {
    if (!closing) log?.warn({ err: error }, 'lost an idle database connection');
  });
  // The pool listens to idle connections only. One that breaks while in use fails its statement, and
  // emits an event that would end the process if nobody listened.
  pool.on('connect', (client) => {
    client.on('error', (error) => log?.debug({ err: error }, 'lost a database connection in use'));
  });
  const close = () => {
    closing = true;
    return pool.end();
  };
  const plain: Database = {
    url,
    pool,
    drizzle: drizzle(pool),
    get withoutRetry() {
      return plain;
    },
    withRetry: (work) => work(plain),
    close,
  };
  if (retry === undefined) return plain;
  const repeat = createRetry(retry);
  const retrying = retryingPool(pool, repeat);
  return {
    url,
    pool: retrying,
    drizzle: drizzle(retrying),
    withoutRetry: plain,
    withRetry: (work) => repeat(() => work(plain)),
    close,
  };
}

/** The pool with a `query` that is repeated; all else is the pool's own. */
function retryingPool(pool: pg.Pool, repeat: Retry): pg.Pool {
  const query = (...args: unknown[]) => repeat(() => Reflect.apply(pool.query, pool, args));
  return new Proxy(pool, { get: (target, key) => (key === 'query' ? query : Reflect.get(target, key)) });
}
