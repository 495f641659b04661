import type { PoolClient } from 'pg';
import { PipelineError, throwIfStopped } from '../core/errors.ts';
import { type Database, endIfSilent } from './database.ts';
import { databaseError, isCanceled } from './database-errors.ts';

export interface ReadLimits {
  /** Postgres cancels a statement that takes longer; 0: never. */
  readonly timeoutMs: number;
  /** The flag or setting that this comes from, for the message. */
  readonly timeoutName?: string;
  /** Cancels the statement on the server at once. */
  readonly signal: AbortSignal;
}

/**
 * Runs `work` on a connection in a read-only transaction, which sees one snapshot throughout. The connection is closed
 * afterwards.
 */
export async function readOnly<T>(
  db: Database,
  { timeoutMs, timeoutName, signal }: ReadLimits,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await db.pool.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  // On another connection, because this one is busy. If it were just closed, the server would notice only later.
  const cancel = () => db.pool.query('select pg_cancel_backend($1)', [rows[0]?.pid]).catch(() => undefined);
  const onAbort = () => void cancel();
  signal.addEventListener('abort', onAbort);
  const began = Date.now();
  let isDone = false;
  try {
    await client.query(
      `begin transaction isolation level repeatable read, read only;
       set local statement_timeout = ${timeoutMs}; set local idle_in_transaction_session_timeout = 0`,
    );
    endIfSilent(client, timeoutMs);
    // After a first query, not even a function can make the transaction read-write.
    await client.query('select 1');
    throwIfStopped(signal);
    const result = await work(client);
    isDone = true;
    return result;
  } catch (error) {
    if (!isCanceled(error)) throw error;
    throwIfStopped(signal);
    if (timeoutMs === 0 || Date.now() - began < timeoutMs) throw databaseError(error);
    const name = timeoutName === undefined ? '' : ` (${timeoutName})`;
    throw new PipelineError(
      `the statement took longer than ${timeoutMs / 1_000} s${name} and was cancelled`,
      { kind: 'database' },
    );
  } finally {
    signal.removeEventListener('abort', onAbort);
    if (!isDone) await cancel();
    client.release(true);
  }
}
