import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import type { Logger } from '../../core/log.ts';
import { databaseError } from './errors.ts';
import { nameLockHolders } from './lock-waits.ts';
import type { Preparing } from './prepared.ts';
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
  readonly timeouts: SessionTimeouts;
  readonly drizzle: NodePgDatabase & Preparing;
  /**
   * The same connections without retry, for callers that have their own answer to an outage: workers put a
   * window off, health checks report it.
   */
  readonly withoutRetry: Database;
  /** Repeats a longer piece of work as a whole; its statements are not repeated one by one as well. */
  withRetry<T>(work: (database: Database) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** When Postgres gives up what a session of ours does, so that one that vanished or hangs stops nobody for good. */
export interface SessionTimeouts {
  /** Waiting for one lock. */
  readonly lockMs: number;
  /** One statement, COPY and merge included. */
  readonly statementMs: number;
  /** Doing nothing within a transaction: between two statements of a load only rows are encoded. */
  readonly idleInTransactionMs: number;
}

export const DEFAULT_TIMEOUTS: SessionTimeouts = {
  lockMs: 120_000,
  statementMs: 3_600_000,
  idleInTransactionMs: 300_000,
};

/** A connection on which nothing has come for so long is tested, … */
const KEEPALIVE_S = 30;
/** … and is broken when nothing has been confirmed for so long. */
const UNCONFIRMED_S = 60;

/**
 * Settings of each session of ours. Not sent with the login: a pooler between us and the server may refuse
 * what it does not know there.
 */
export async function setUpSession(client: pg.ClientBase, timeouts: SessionTimeouts): Promise<void> {
  await client.query(`
    -- Days and moments are read as Postgres writes them, which a database may have changed.
    set datestyle to 'ISO';
    set lock_timeout = ${timeouts.lockMs};
    set statement_timeout = ${timeouts.statementMs};
    set idle_in_transaction_session_timeout = ${timeouts.idleInTransactionMs};
    -- Of a client that vanished without a word the server learns by itself, and lets go of its locks.
    set tcp_keepalives_idle = ${KEEPALIVE_S};
    set tcp_keepalives_interval = 10;
    set tcp_keepalives_count = 3;
    set tcp_user_timeout = ${UNCONFIRMED_S * 1_000}`);
  // Also while a statement runs or waits. Some systems a server may run on refuse it.
  await client.query(`set client_connection_check_interval = ${KEEPALIVE_S * 1_000}`).catch((error) => {
    if ((error as { code?: unknown }).code !== '22023') throw error;
  });
}

interface DatabaseOptions {
  readonly url: string;
  /** Connections at most; a worker needs one per window in flight and one to spare. */
  readonly connections?: number;
  readonly log?: Logger;
  /** Without it nothing is retried. */
  readonly retry?: RetryOptions;
  readonly timeouts?: SessionTimeouts;
  /** How long a connection may take to be there. */
  readonly connectWithinMs?: number;
}

/** Opens a pool; connects when first used. */
export function openDatabase(options: DatabaseOptions): Database {
  const { url, connections = 5, log, retry, timeouts = DEFAULT_TIMEOUTS, connectWithinMs = 15_000 } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: 'eod',
    connectionTimeoutMillis: connectWithinMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_S * 1_000,
    onConnect: (client) => setUpSession(client, timeouts),
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
  const stopNaming = nameLockHolders(pool, url, timeouts.lockMs, log);
  const close = () => {
    closing = true;
    stopNaming();
    return pool.end();
  };
  const classifying = classifyingPool(pool);
  const plain: Database = {
    url,
    pool: classifying,
    timeouts,
    drizzle: drizzle(classifying),
    get withoutRetry() {
      return plain;
    },
    withRetry: (work) => work(plain),
    close,
  };
  if (retry === undefined) return plain;
  const repeat = createRetry(retry);
  const retrying = retryingPool(classifying, repeat);
  return {
    url,
    pool: retrying,
    timeouts,
    drizzle: drizzle(retrying),
    withoutRetry: plain,
    withRetry: (work) => repeat(() => work(plain)),
    close,
  };
}

/** The pool with errors of ours in place of the driver's, some of which do not say that they are of Postgres. */
function classifyingPool(pool: pg.Pool): pg.Pool {
  const classify =
    (call: (...args: never[]) => Promise<unknown>) =>
    (...args: unknown[]) =>
      Reflect.apply(call, pool, args).catch((error: unknown) => {
        throw databaseError(error);
      });
  const methods: Record<PropertyKey, unknown> = {
    query: classify(pool.query),
    connect: classify(pool.connect),
  };
  return new Proxy(pool, { get: (target, key) => methods[key] ?? Reflect.get(target, key) });
}

/** The pool with a `query` that is repeated; all else is the pool's own. */
function retryingPool(pool: pg.Pool, repeat: Retry): pg.Pool {
  const query = (...args: unknown[]) => repeat(() => Reflect.apply(pool.query, pool, args));
  return new Proxy(pool, { get: (target, key) => (key === 'query' ? query : Reflect.get(target, key)) });
}
