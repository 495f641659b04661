import { sql } from 'drizzle-orm';
import type { PoolClient } from 'pg';
import { today } from '../../core/clock.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import { runs } from '../../load/state/schema/work.ts';
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
  await context.db.drizzle
    .insert(runs)
    .values({
      ...{ id: runId, kind: 'import', requested_by: whoAsks(), from_date: day, to_date: day },
      request: { kind: 'import', targets: [], instruments: [], options: {}, live: false, ...asked },
    })
    // An earlier try has written it, and only its answer was lost.
    .onConflictDoNothing();
}

async function endDeadImports(context: Context): Promise<void> {
  const open = await context.db.pool.query<{ id: number }>(
    "select id::int from etl.runs where kind = 'import' and state = 'running' order by id",
  );
  for (const { id } of open.rows) {
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
  const inserted = await db.pool.query<{ id: number }>(
    `insert into etl.windows
       (run_id, operation, exchange, from_date, to_date, params, state, attempts, source_file, source_hash, started_at)
     select r.id, $2, s.exchange, s.day, s.day, s.params, 'running', 1, $3, $4, clock_timestamp()
       from etl.runs r, unnest($5::text[], $6::date[], $7::jsonb[]) with ordinality as s(exchange, day, params, place)
      where r.id = $1 and r.state = 'running' order by s.place
     returning id::int`,
    [
      ...[runId, IMPORTED, file.path, file.hash],
      ...[sessions.map((one) => one.exchange), sessions.map((one) => one.day)],
      sessions.map(({ content, numbered }) => ({
        file: content.name,
        ...(numbered && tickersAsOf !== null ? { tickers: tickersAsOf } : {}),
      })),
    ],
  );
  return inserted.rowCount === 0 ? null : inserted.rows.map((row) => row.id).sort((a, b) => a - b);
}

/** Marks a window whose rows could not be stored. */
export async function failWindow({ db }: Context, windowId: number, error: string): Promise<void> {
  await db.pool.query(
    `update etl.windows set state = 'failed', error = $2, finished_at = clock_timestamp()
      where id = $1 and state in ('pending', 'running')`,
    [windowId, error],
  );
}

/** Hashes of files an earlier import has loaded in full. */
export async function importedHashes({ db }: Context): Promise<Set<string>> {
  const found = await db.pool.query<{ hash: string }>(
    `select distinct w.source_hash as hash from etl.windows w join etl.runs r on r.id = w.run_id
      where r.kind = 'import' and w.source_hash is not null
      group by w.source_hash, w.run_id having bool_and(w.state = 'loaded')`,
  );
  return new Set(found.rows.map((row) => row.hash));
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
    await db.drizzle.execute(sql`
      update etl.runs r set from_date = w.first, to_date = w.last
        from (select min(from_date) as first, max(to_date) as last from etl.windows where run_id = ${runId}) w
       where r.id = ${runId} and w.first is not null`);
    if (end.stopped !== null) return await callOff(context, runId, end.stopped);
    await closeRun(context, runId);
    if (end.bad.length === 0) return;
    const more = end.bad.length > NAMED ? ` and ${end.bad.length - NAMED} more` : '';
    await db.pool.query(
      "update etl.runs set state = 'failed', error = $2 where id = $1 and state = 'completed'",
      [
        runId,
        `${end.bad.length === 1 ? 'a file was' : `${end.bad.length} files were`} not imported: ${end.bad.slice(0, NAMED).join('; ')}${more}`,
      ],
    );
  } finally {
    await lock.query(`select pg_advisory_unlock(${LOCK})`, [runId]).catch(() => undefined);
    lock.release();
  }
}

async function callOff(context: Context, runId: number, why: string): Promise<void> {
  await context.db.pool.query(
    `update etl.windows set state = 'cancelled', error = $2, finished_at = clock_timestamp()
      where run_id = $1 and state in ('pending', 'running')`,
    [runId, why],
  );
  await closeRun(context, runId);
  await context.db.pool.query(
    "update etl.runs set state = 'cancelled', error = $2 where id = $1 and state in ('completed', 'failed')",
    [runId, why],
  );
}
