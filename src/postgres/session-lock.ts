import type { PoolClient } from 'pg';
import { firstItem } from '../core/iterables.ts';
import type { Database } from './database.ts';

/** An advisory lock of a database session: it lasts as long as the connection that holds it. */
interface SessionLock {
  readonly client: PoolClient;
  release(): Promise<void>;
  /** Closes the connection after an error that may have broken it; that releases the lock. */
  discard(): void;
}

/**
 * Takes the lock of this name on a separate connection, which shows others that this process is alive. Waits for
 * the process that holds it.
 *
 * @param begin what to do first while holding the lock. Both are repeated together, because the lock is lost with its
 *   connection.
 */
export function takeSessionLock(
  database: Database,
  name: string,
  begin: (withoutRetry: Database) => Promise<void> = async () => undefined,
): Promise<SessionLock> {
  return database.withRetry(async (withoutRetry) => {
    const { lock } = await lockSession(withoutRetry, name, 'pg_advisory_lock');
    await discardAfterError(lock, () => begin(withoutRetry));
    return lock;
  });
}

/**
 * The same for work that goes on after an outage of Postgres, which ends the session and with it the lock: it is taken
 * again as soon as Postgres is back. `begin` is not repeated then.
 */
export async function keepSessionLock(
  database: Database,
  name: string,
  begin: (withoutRetry: Database) => Promise<void>,
): Promise<Pick<SessionLock, 'release'>> {
  let isReleased = false;
  let current = takeSessionLock(database, name, begin);
  const retakeAtEnd = (lock: SessionLock): SessionLock => {
    const takeAgain = () => {
      if (isReleased) return;
      lock.discard();
      current = takeSessionLock(database, name).then(retakeAtEnd);
      // Without a handler a failure would end the process. The work fails by itself without Postgres, and `release` then
      // has no lock to release.
      current.catch(() => undefined);
    };
    lock.client.once('end', takeAgain);
    // After its release the connection is the pool's, and its end no longer concerns this lock.
    return { ...lock, release: () => lock.release().finally(() => lock.client.off('end', takeAgain)) };
  };
  current = current.then(retakeAtEnd);
  await current;
  return {
    async release() {
      isReleased = true;
      const lock = await current.catch(() => null);
      await lock?.release();
    },
  };
}

/**
 * Runs `work` while holding the lock of this name; lock and work are repeated together while Postgres is unreachable.
 *
 * @returns false if somebody else holds the lock.
 */
export function workWithSessionLock(
  database: Database,
  name: string,
  work: (withoutRetry: Database) => Promise<void>,
): Promise<boolean> {
  return database.withRetry(async (withoutRetry) => {
    const lock = await trySessionLock(withoutRetry, name);
    if (lock === null) return false;
    await discardAfterError(lock, () => work(withoutRetry));
    await lock.release();
    return true;
  });
}

async function discardAfterError(lock: SessionLock, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    lock.discard();
    throw error;
  }
}

/** Takes the lock of this name without waiting. @returns null if somebody else holds it. */
export async function trySessionLock(database: Database, name: string): Promise<SessionLock | null> {
  const { result, lock } = await lockSession(database, name, 'pg_try_advisory_lock');
  if (result === true) return lock;
  lock.client.release();
  return null;
}

async function lockSession(
  database: Database,
  name: string,
  lockFunction: 'pg_advisory_lock' | 'pg_try_advisory_lock',
) {
  const key = 'hashtextextended($1, 0)';
  const client = await database.pool.connect();
  const lock: SessionLock = {
    client,
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
  try {
    const { rows } = await client.query<{ result: unknown }>(`select ${lockFunction}(${key}) as result`, [
      name,
    ]);
    return { result: firstItem(rows).result, lock };
  } catch (error) {
    lock.discard();
    throw error;
  }
}
