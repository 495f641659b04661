import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import type { Logger } from '../../core/log.ts';

/** Connections to Postgres: drizzle for the pipeline's own tables, the pool for COPY and merges. */
export interface Database {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly drizzle: NodePgDatabase;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly url: string;
  /** Connections at most; a worker needs one per window in flight and one to spare. */
  readonly connections?: number;
  readonly log?: Logger;
}

/** Opens a pool; connects when first used. */
export function openDatabase({ url, connections = 5, log }: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: 'eod',
    connectionTimeoutMillis: 15_000,
  });
  let closing = false;
  // An idle connection that breaks (server restart) is replaced at the next use; without a
  // listener it would end the process. While we close, a server that stops first is no news.
  pool.on('error', (error) => {
    if (!closing) log?.warn({ err: error }, 'lost an idle database connection');
  });
  // The pool listens to idle connections only. One that breaks in somebody's hands tells so by the
  // statement that fails, and by an event that would end the process if nobody heard it.
  pool.on('connect', (client) => {
    client.on('error', (error) => log?.debug({ err: error }, 'lost a database connection in use'));
  });
  return {
    url,
    pool,
    drizzle: drizzle(pool),
    close() {
      closing = true;
      return pool.end();
    },
  };
}
