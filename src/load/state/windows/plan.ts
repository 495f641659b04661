import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day } from '../../../core/days.ts';
import { adoptAnswers } from '../responses/to-replay.ts';
import { responses } from '../schema/source.ts';
import { runs, windows } from '../schema/work.ts';
import type { WindowAfter } from './transitions.ts';

/** A window to be written. */
export interface NewWindow {
  readonly operation: string;
  readonly exchange: string;
  readonly from: Day;
  readonly to: Day;
  readonly instruments: readonly string[];
  /** Request options; of an imported file, what a replay of it has to know. */
  readonly params: Readonly<Record<string, string>>;
  readonly variant: string;
  readonly filtered: boolean;
}

/** A window as planned: one request's worth, or a stretch that needs no request and why. */
export interface PlannedWindow extends NewWindow {
  readonly state: WindowAfter<'plan'>;
  readonly reason: string | null;
}

/** Windows written with one statement. */
const BATCH = 2_000;

/** The state in which a window is written that a worker is to take. */
const PLANNED: WindowAfter<'plan'> = 'pending';

/** Writes planned windows of a run; skipped ones are over at once. */
export async function insertWindows(
  tx: NodePgDatabase,
  runId: number,
  planned: Iterable<PlannedWindow>,
): Promise<void> {
  for (const batch of batches(planned)) {
    const rows = JSON.stringify(batch);
    await tx.execute(sql`
      insert into ${windows}
        (run_id, operation, exchange, from_date, to_date, instruments, params, variant, filtered, state, error, finished_at)
      select ${runId}, w.operation, w.exchange, w."from", w."to",
             array(select jsonb_array_elements_text(w.instruments)), w.params, w.variant, w.filtered, w.state, w.reason,
             case when w.state = 'skipped' then statement_timestamp() end
        from jsonb_to_recordset(${rows}::jsonb) as w(
          operation text, exchange text, "from" date, "to" date, instruments jsonb, params jsonb,
          variant text, filtered boolean, state text, reason text)`);
  }
}

function* batches(planned: Iterable<PlannedWindow>): Generator<PlannedWindow[]> {
  let batch: PlannedWindow[] = [];
  for (const window of planned) {
    batch.push(window);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** A file whose sessions are imported, one window each. */
interface FileWindows {
  /** Null where the rows follow from what is stored. */
  readonly file: string | null;
  /** SHA-256 of its bytes. */
  readonly hash: string | null;
  readonly sessions: readonly {
    /** The data set. */
    readonly operation: string;
    readonly exchange: string;
    readonly from: Day;
    readonly to: Day;
    readonly params: Readonly<Record<string, string>>;
  }[];
}

/**
 * Writes the windows of a file that is being imported, as `running`.
 *
 * @returns their numbers in the order of the sessions; none when the run goes on no longer.
 */
export async function insertFileWindows(
  db: NodePgDatabase,
  runId: number,
  { file, hash, sessions }: FileWindows,
): Promise<number[]> {
  const state: WindowAfter<'import'> = 'running';
  const inserted = await db.execute<{ id: number }>(sql`
    insert into ${windows}
      (run_id, operation, exchange, from_date, to_date, params, state, attempts, source_file, source_hash, started_at)
    select r.id, s.operation, s.exchange, s.from_day, s.to_day, s.params, ${state}, 1, ${file}, ${hash}, clock_timestamp()
      from ${runs} r, rows from (jsonb_to_recordset(${JSON.stringify(sessions)}::jsonb)
             as (operation text, exchange text, "from" date, "to" date, params jsonb)) with ordinality as s(operation, exchange, from_day, to_day, params, place)
     where r.id = ${runId} and r.state = 'running' order by s.place
    returning id::int`);
  return inserted.rows.map((row) => row.id).sort((a, b) => a - b);
}

/**
 * Writes one window for each kept answer that `chosen` (a query of their ids) names, in the order the
 * answers were fetched.
 */
export async function insertReplayWindows(tx: NodePgDatabase, runId: number, chosen: SQL): Promise<void> {
  await tx.execute(sql`
    insert into ${windows} (run_id, operation, exchange, from_date, to_date, instruments, params, variant,
      filtered, state, source_file, source_hash, response_id)
    select ${runId}, r.operation, r.exchange, r.from_date, r.to_date, r.instruments, r.params, r.variant, r.filtered,
      ${PLANNED}, r.params->>'file', r.hash, r.id
      from (${chosen}) as c(id) join ${responses} r on r.id = c.id order by r.fetched_at, r.id`);
  await adoptAnswers(tx, runId);
}

/**
 * Writes one window for each window that `chosen` (a query of their ids) names: what it rejected is
 * read once more. It is the new window's parent.
 */
export async function insertRereadWindows(tx: NodePgDatabase, runId: number, chosen: SQL): Promise<void> {
  await tx.execute(sql`
    insert into ${windows}
      (run_id, parent_id, operation, exchange, from_date, to_date, instruments, params, variant, filtered, state)
    select ${runId}, r.id, r.operation, r.exchange, r.from_date, r.to_date, r.instruments, r.params, r.variant, true, ${PLANNED}
      from ${windows} r where r.id in (${chosen}) order by r.id`);
}

/** Writes windows of shorter ranges in the place of one that is split. */
export async function insertPieces(
  tx: NodePgDatabase,
  parentId: number,
  pieces: readonly Pick<NewWindow, 'from' | 'to'>[],
): Promise<void> {
  await tx.execute(sql`
    insert into ${windows}
      (run_id, parent_id, operation, exchange, from_date, to_date, instruments, params, variant, filtered, state)
    select w.run_id, w.id, w.operation, w.exchange, piece."from", piece."to", w.instruments, w.params, w.variant, w.filtered, ${PLANNED}
      from ${windows} w, jsonb_to_recordset(${JSON.stringify(pieces)}::jsonb) as piece("from" date, "to" date)
     where w.id = ${parentId}`);
}
