import type { Socket } from 'node:net';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { errorCode } from '../core/errors.ts';
import type { Logger } from '../core/log.ts';
import { DISCONNECT_WITHIN_MS, endsWithin } from '../core/waits.ts';
import { databaseError } from './database-errors.ts';
import type { Preparing } from './prepared.ts';
import { createRetry, type Retry, type RetryOptions } from './retry.ts';

/**
 * Connections to Postgres. Opened with `retry`, every single statement on `pool` and `drizzle` and every whole
 * `transaction()` is repeated while Postgres is unreachable. The connection may have broken after the statement or
 * commit took effect, so all of them must be safe to repeat: rows are inserted under reserved numbers or `on conflict`,
 * and updates name the state they start from.
 */
export interface Database {
  readonly url: string;
  /** For single statements, and for connections that a caller holds; statements on those are never repeated. */
  readonly pool: pg.Pool;
  readonly timeouts: SessionTimeouts;
  readonly drizzle: NodePgDatabase & Preparing;
  readonly log: Logger | undefined;
  /**
   * The same connections without retry, for callers that handle an outage themselves: workers postpone a window, health
   * checks report it.
   */
  readonly withoutRetry: Database;
  /** Repeats a longer piece of work as a whole, but not its statements one by one. */
  withRetry<T>(work: (database: Database) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** When Postgres ends what a session of eod does, so that one that hangs or vanished cannot block others for good. */
export interface SessionTimeouts {
  /** Waiting for one lock. */
  readonly lockMs: number;
  /** One statement, COPY and merge included. */
  readonly statementMs: number;
  /** Idle within a transaction: between two statements of a load, rows are only encoded. */
  readonly idleInTransactionMs: number;
}

export const DEFAULT_TIMEOUTS: SessionTimeouts = {
  lockMs: 120_000,
  statementMs: 3_600_000,
  idleInTransactionMs: 300_000,
};

/** How long after the time limit of a statement its end has to arrive. */
const OVERDUE_MS = 2_000;

/** A connection that was silent for this long is probed. */
const KEEPALIVE_S = 30;
/** A connection is broken if nothing was acknowledged for this long. */
const UNCONFIRMED_S = 60;

/**
 * Settings of each session. They are not sent as startup parameters, because a pooler between eod and the server may
 * refuse those that it does not know.
 */
export async function setUpSession(client: pg.ClientBase, timeouts: SessionTimeouts): Promise<void> {
  const wire = asWire(client);
  const { stream } = wire.connection;
  stream.on('timeout', () => {
    if (!wire.readyForQuery) {
      const overdue = new Error('no response within the time limit of a statement');
      stream.destroy(Object.assign(overdue, { code: 'ETIMEDOUT' }));
    }
  });
  endIfSilent(client, timeouts.statementMs);
  await client.query(`
    -- Settings of the database or the role, made for other programs, must not change what our statements mean. A
    -- statement has to see what was committed while it waited for a lock, so the isolation is READ COMMITTED.
    set default_transaction_isolation = 'read committed';
    set datestyle to 'ISO';
    set intervalstyle to 'postgres';
    set extra_float_digits = 1;
    set standard_conforming_strings = on;
    set array_nulls = on;
    set transform_null_equals = off;
    set lock_timeout = ${timeouts.lockMs};
    set statement_timeout = ${timeouts.statementMs};
    set idle_in_transaction_session_timeout = ${timeouts.idleInTransactionMs};
    -- Days that are being loaded have no statistics. The costs that the planner assumes for them would have statements
    -- of some milliseconds compiled for hundreds.
    set jit = off;
    -- The server finds out on its own that a client vanished, and releases its locks.
    set tcp_keepalives_idle = ${KEEPALIVE_S};
    set tcp_keepalives_interval = 10;
    set tcp_keepalives_count = 3;
    set tcp_user_timeout = ${UNCONFIRMED_S * 1_000}`);
  // Checks the client while a statement runs or waits, too. Not all operating systems of servers support it.
  await client.query(`set client_connection_check_interval = ${KEEPALIVE_S * 1_000}`).catch((error) => {
    if (errorCode(error) !== '22023') throw error;
  });
}

/** The parts of a pg client that its types leave out. */
interface Wire {
  /** Whether no statement is in progress. */
  readonly readyForQuery: boolean;
  readonly connection: { readonly stream: Socket };
}

const asWire = (client: pg.ClientBase) => client as unknown as Wire;

/**
 * Sets how long the statements of a session may take, for our side of the connection: it is broken off if nothing
 * arrives during a statement for a little longer. The server would have ended the statement before, so it, or what is
 * between, accepts connections and no longer responds. (pg's `query_timeout` would not notice the end of a COPY.)
 *
 * @param statementMs the session's statement_timeout; 0: no limit.
 */
export function endIfSilent(client: pg.ClientBase, statementMs: number): void {
  asWire(client).connection.stream.setTimeout(statementMs === 0 ? 0 : statementMs + OVERDUE_MS);
}

interface DatabaseOptions {
  readonly url: string;
  /** The most connections; a worker needs one per window in flight and one more. */
  readonly connections?: number;
  readonly log?: Logger;
  /** Without it nothing is retried. */
  readonly retry?: RetryOptions;
  readonly timeouts?: SessionTimeouts;
  /** How long connecting may take. */
  readonly connectWithinMs?: number;
}

/** Opens a pool, which connects when it is first used. */
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
  // An idle connection that breaks (server restart) is replaced at the next use; without a listener its error would
  // end the process. While the pool closes, the server may stop first.
  pool.on('error', (error) => {
    if (!closing) log?.warn({ err: error }, 'lost an idle database connection');
  });
  // The pool listens to idle connections only. One that breaks while in use fails its statement, and also emits an
  // error that would end the process without a listener.
  pool.on('connect', (client) => {
    client.on('error', (error) => log?.debug({ err: error }, 'lost a database connection in use'));
  });
  const close = async () => {
    closing = true;
    await endsWithin(pool.end(), DISCONNECT_WITHIN_MS);
  };
  const classifying = classifyingPool(pool);
  const plain: Database = {
    url,
    pool: classifying,
    timeouts,
    drizzle: drizzle(classifying),
    log,
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
    log,
    withoutRetry: plain,
    withRetry: (work) => repeat(() => work(plain)),
    close,
  };
}

/** The pool, with errors as PipelineErrors, since some of the driver's do not say that they are about Postgres. */
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

/** The pool with a `query` that is retried; everything else is the pool's own. */
function retryingPool(pool: pg.Pool, repeat: Retry): pg.Pool {
  const query = (...args: unknown[]) => repeat(() => Reflect.apply(pool.query, pool, args));
  return new Proxy(pool, { get: (target, key) => (key === 'query' ? query : Reflect.get(target, key)) });
}
