import { sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { PoolClient } from 'pg';
import type { Database } from './database.ts';
import { databaseError } from './database-errors.ts';
import type { Preparing } from './prepared.ts';

/** A transaction in progress: drizzle's statements, and the connection for COPY, merges and locks. */
export interface Transaction extends NodePgDatabase, Preparing {
  readonly client: PoolClient;
}

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws. With a database that retries,
 * all of it is repeated while Postgres is unreachable, although the commit that seemed to fail may have happened:
 * `work` must be safe to repeat.
 *
 * Drizzle's own `transaction` is not used: it never releases the connection of a `begin` that failed, and reports a
 * `rollback` that fails as well instead of the error before it.
 *
 * @throws PipelineError of kind `database` or `database_unreachable` for Postgres errors; other PipelineErrors pass
 * through.
 */
export function transaction<T>(database: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return database.withRetry(async ({ pool }) => {
    let client: PoolClient | undefined;
    let broken: Error | undefined;
    try {
      client = await pool.connect();
      return await transactionOn(client, work);
    } catch (error) {
      broken = databaseError(error);
      throw broken;
    } finally {
      client?.release(broken);
    }
  });
}

/** The same on a connection that the caller holds. After an error the caller has to close it, which ends the transaction. */
export async function transactionOn<T>(
  client: PoolClient,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  await client.query('begin');
  const result = await work(Object.assign(drizzle(client), { client }));
  await client.query('commit');
  return result;
}

/**
 * Does what follows a commit and only helps later statements. Its failure is logged and not thrown: the caller would
 * report what was committed as failed.
 */
export async function afterCommit(
  { log }: Pick<Database, 'log'>,
  action: string,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    log?.warn({ err: databaseError(error) }, `the load is stored, but it was not possible to ${action}`);
  }
}

/** Takes the advisory lock of this name until the transaction ends; waits while another session holds it. */
export async function lockUntilCommit(tx: NodePgDatabase, name: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`);
}
