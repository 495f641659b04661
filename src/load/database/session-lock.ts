import type { Database } from './database.ts';

/** An advisory lock of a database session: it lasts as long as the connection that holds it. */
export interface SessionLock {
  release(): Promise<void>;
  /** Closes its connection, after an error that may have broken it: the lock goes with it. */
  discard(): void;
}

/**
 * Takes the lock of this name on a connection of its own. So others know that the process that holds it
 * lives.
 *
 * @param options.wait for whoever holds it; if not, null is returned where somebody does.
 */
export async function takeSessionLock(
  database: Database,
  name: string,
  options: { readonly wait: true },
): Promise<SessionLock>;
export async function takeSessionLock(
  database: Database,
  name: string,
  options: { readonly wait: false },
): Promise<SessionLock | null>;
export async function takeSessionLock(
  database: Database,
  name: string,
  { wait }: { readonly wait: boolean },
): Promise<SessionLock | null> {
  const client = await database.pool.connect();
  try {
    const key = 'hashtextextended($1, 0)';
    const taken = await client.query<{ free: unknown }>(
      `select pg_${wait ? '' : 'try_'}advisory_lock(${key}) as free`,
      [name],
    );
    if (!wait && taken.rows[0]?.free !== true) {
      client.release();
      return null;
    }
    return {
      async release() {
        try {
          await client.query(`select pg_advisory_unlock(${key})`, [name]);
          client.release();
        } catch {
          client.release(true);
        }
      },
      discard: () => client.release(true),
    };
  } catch (error) {
    client.release(true);
    throw error;
  }
}
