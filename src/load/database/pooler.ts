import type pg from 'pg';

/** Rounds of looking; on a busy pooler somebody else may get in between. */
const ROUNDS = 5;

/**
 * Does a pooler between us and Postgres hand our session to others between two transactions (pgbouncer with
 * `pool_mode = transaction`)? Session locks, temporary tables and prepared statements do not
 * survive that. Found out in fact: while a second connection is in a transaction, it may have got the server
 * process that the first one just used, or the first one gets another.
 */
export async function sharesSessions(pool: pg.Pool): Promise<boolean> {
  const first = await pool.connect();
  try {
    const own = await processOf(first);
    // What the login said of the process is a pooler's own invention.
    if (own === (first as unknown as { processID: number }).processID) return false;
    for (let round = 0; round < ROUNDS; round += 1) {
      const second = await pool.connect();
      try {
        await second.query('begin');
        if ((await processOf(second)) === own || (await processOf(first)) !== own) return true;
      } finally {
        // Closed, and with it the transaction, whoever's it is.
        second.release(true);
      }
    }
    return false;
  } finally {
    first.release();
  }
}

async function processOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return (rows[0] as { pid: number }).pid;
}
