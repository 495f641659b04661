import type { PoolClient } from 'pg';
import { today } from '../../core/clock.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import { transaction } from '../../load/database/transaction.ts';
import { abandonRun, insertRun, runningRuns, setRunRange } from '../../load/state/runs.ts';
import { insertFileWindows } from '../../load/state/windows.ts';
import type { Context } from '../context.ts';
import { closeRun } from '../runs/advance.ts';
import { whoAsks } from '../runs/runs.ts';
import type { ImportFile } from './find-files.ts';
import { IMPORTED } from './session.ts';

/** An import under way. It holds a lock as long as its process lives: so a dead one is known. */
export interface ImportRun {
  readonly runId: number;
  readonly lock: PoolClient;
}

const LOCK = "hashtextextended('eod import ' || $1, 0)";

/**
 * Writes the run of an import under a number from `reserveRunId`, after ending those whose process is
 * gone. May be tried again when Postgres was away.
 */
export async function openImport(
  context: Context,
  runId: number,
  asked: { readonly paths: readonly string[]; readonly force: boolean },
): Promise<ImportRun> {
  const lock = await context.db.pool.connect();
  try {
    // First, so that nobody takes the run for one whose process is gone.
    await lock.query(`select pg_advisory_lock(${LOCK})`, [runId]);
    await writeRun(context, runId, asked);
    return { runId, lock };
  } catch (error) {
    // Thrown away: the lock goes with it.
    lock.release(true);
    throw error;
  }
}

async function writeRun(
  context: Context,
  runId: number,
  asked: { readonly paths: readonly string[]; readonly force: boolean },
): Promise<void> {
  await endDeadImports(context);
  const day = today(context.clock, context.config.EOD_TIMEZONE);
  await insertRun(context.db.drizzle, {
    id: runId,
    kind: 'import',
    requestedBy: whoAsks(),
    request: { kind: 'import', targets: [], instruments: [], options: {}, live: false, ...asked },
    from: day,
    to: day,
  });
}

async function endDeadImports(context: Context): Promise<void> {
  for (const id of await runningRuns(context.db.drizzle, 'import')) {
    const client = await context.db.pool.connect();
    try {
      const got = await client.query<{ free: boolean }>(`select pg_try_advisory_lock(${LOCK}) as free`, [id]);
      if (got.rows[0]?.free !== true) continue;
      await callOff(context, id, 'its process ended before it did');
      await client.query(`select pg_advisory_unlock(${LOCK})`, [id]);
    } finally {
      client.release();
    }
  }
}

/**
 * One window for each session of a file, all written before the first is loaded: a file of which
 * some never were is not complete, and is read again. Their `params` say what a replay has to know.
 *
 * @returns their numbers, or null when the run has been called off.
 */
export async function openFileWindows(
  { db }: Context,
  runId: number,
  file: ImportFile,
  sessions: readonly Pick<FileSession, 'exchange' | 'day' | 'numbered' | 'content'>[],
  tickersAsOf: string | null,
): Promise<number[] | null> {
  const inserted = await insertFileWindows(db.drizzle, runId, {
    operation: IMPORTED,
    file: file.path,
    hash: file.hash,
    sessions: sessions.map(({ exchange, day, content, numbered }) => ({
      exchange,
      day,
      params: {
        file: content.name,
        ...(numbered && tickersAsOf !== null ? { tickers: tickersAsOf } : {}),
      },
    })),
  });
  return inserted.length === 0 ? null : inserted;
}

/** Most bad files the run itself names. */
const NAMED = 20;

/** Ends the run with its totals: failed where a file was bad, cancelled where it did not get to all. */
export async function closeImport(
  context: Context,
  { runId, lock }: ImportRun,
  end: { readonly bad: readonly string[]; readonly stopped: string | null },
): Promise<void> {
  const { db } = context;
  try {
    await setRunRange(db.drizzle, runId);
    if (end.stopped !== null) return await callOff(context, runId, end.stopped);
    const more = end.bad.length > NAMED ? ` and ${end.bad.length - NAMED} more` : '';
    const bad = `${end.bad.length === 1 ? 'a file was' : `${end.bad.length} files were`} not imported: ${end.bad.slice(0, NAMED).join('; ')}${more}`;
    await closeRun(context, runId, end.bad.length === 0 ? null : { state: 'failed', error: bad });
  } finally {
    await lock.query(`select pg_advisory_unlock(${LOCK})`, [runId]).catch(() => undefined);
    lock.release();
  }
}

async function callOff(context: Context, runId: number, why: string): Promise<void> {
  const ended = await transaction(context.db, (tx) => abandonRun(tx, runId, why));
  if (ended !== null) context.log.info({ runId, state: ended.state }, 'run has ended');
}
