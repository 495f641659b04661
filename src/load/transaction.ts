import type { PoolClient } from 'pg';
import type { Database } from './database.ts';
import { databaseError } from './failures.ts';

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
