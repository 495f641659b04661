import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { PoolClient } from 'pg';
import type { Database } from './database.ts';
import { databaseError } from './errors.ts';

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws.
 *
 * @throws PipelineError of kind `database` for Postgres errors; other errors of ours pass through.
 */
export async function transaction<T>(
  database: Database,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await database.pool.connect().catch((error) => {
    throw databaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    broken = error instanceof Error ? error : new Error(String(error));
    throw databaseError(error);
  } finally {
    // A connection that saw an error is thrown away: its transaction dies with it.
    client.release(broken);
  }
}

/**
 * The same for statements built with drizzle. Drizzle's own `transaction` keeps the connection of a
 * `begin` that failed for good, and hides what went wrong behind a `rollback` that fails too.
 */
export function drizzleTransaction<T>(
  database: Database,
  work: (tx: NodePgDatabase) => Promise<T>,
): Promise<T> {
  return transaction(database, (client) => work(drizzle(client)));
}
