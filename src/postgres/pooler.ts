import type pg from 'pg';
import { firstItem } from '../core/iterables.ts';

/** How often to try; on a busy pooler other clients may interfere. */
const ROUNDS = 5;

/**
 * True if a pooler between eod and Postgres gives a session to other clients between two transactions (pgbouncer
 * with `pool_mode = transaction`). Session locks, temporary tables and prepared statements do not survive that. This is
 * found out by trying: while a second connection is in a transaction, it may have the server process that the first one
 * just used, or the first one may get another.
 */
export async function sharesSessions(pool: pg.Pool): Promise<boolean> {
  const first = await pool.connect();
  try {
    const processOfFirst = await readProcessId(first);
    // A pooler makes up the process id that it sends at login.
    if (processOfFirst === (first as unknown as { processID: number }).processID) return false;
    for (let round = 0; round < ROUNDS; round += 1) {
      const second = await pool.connect();
      try {
        await second.query('begin');
        if (
          (await readProcessId(second)) === processOfFirst ||
          (await readProcessId(first)) !== processOfFirst
        )
          return true;
      } finally {
        // Closing the connection ends the transaction.
        second.release(true);
      }
    }
    return false;
  } finally {
    first.release();
  }
}

async function readProcessId(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return firstItem(rows).pid;
}
