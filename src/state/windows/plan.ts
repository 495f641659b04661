import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { takeIds } from '../schema/columns.ts';
import { responses } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import type { WindowAfter } from './transitions.ts';

/** A window to be inserted. */
export interface NewWindow extends Pair, DayRange {
  readonly instruments: readonly string[];
  /** Request options; for an imported file, what a replay of it needs to know. */
  readonly params: Readonly<Record<string, string>>;
  readonly variant: string;
  readonly filtered: boolean;
}

/** A planned window: one request's worth, or a range that needs no request, with the reason. */
export interface PlannedWindow extends NewWindow {
  readonly state: WindowAfter<'plan'>;
  readonly reason: string | null;
}

/** How many windows are inserted with one statement. */
const BATCH = 2_000;

/** The state of a new window that a worker is to take. */
const PLANNED: WindowAfter<'plan'> = 'pending';

// The statements are written as SQL, because `insert … select` of drizzle has to give a value for every column of the
// table, its id and all defaults included.

/** Inserts planned windows of a run; skipped ones end at once. */
export async function insertWindows(
  tx: NodePgDatabase,
  runId: number,
  planned: Iterable<PlannedWindow>,
): Promise<void> {
  for (const batch of batches(planned)) {
    const rows = JSON.stringify(batch);
    await tx.execute(sql`
      insert into ${windows}
        (run_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, state, error, finished_at)
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

/**
 * Reserves the ids of windows that `insertFileWindows` will insert: if the connection breaks during the insert, it is not
 * known whether they were inserted, and a second insert with the same ids does not create them twice.
 */
export const reserveWindowIds = (db: NodePgDatabase, count: number): Promise<number[]> =>
  takeIds(db, windows, count);

/** A file whose parts are imported, one window each. */
interface FileWindows {
  /** From `reserveWindowIds`, one for each part. */
  readonly ids: readonly number[];
  /** Null if the rows are computed from what is stored. */
  readonly file: string | null;
  /** SHA-256 of its bytes. */
  readonly hash: string | null;
  readonly parts: readonly (Pick<NewWindow, 'operation' | 'exchange' | 'from' | 'to' | 'params'> &
    Partial<Pick<NewWindow, 'filtered'>>)[];
}

/** A window that a part of a file has. */
export interface FileWindow extends NewWindow {
  readonly id: number;
  readonly runId: number;
}

/**
 * Inserts the windows of a file that is being imported, as `running`.
 *
 * @returns them in the order of the parts; none if the run is not running any more.
 */
export async function insertFileWindows(
  db: NodePgDatabase,
  runId: number,
  { ids, file, hash, parts }: FileWindows,
): Promise<FileWindow[]> {
  const state: WindowAfter<'import'> = 'running';
  const rows = JSON.stringify(parts.map((part, at) => ({ ...part, id: ids[at] })));
  const inserted = await db.execute<{ id: number }>(sql`
    with inserted as (
      insert into ${windows}
        (id, run_id, operation, exchange, from_date, to_date, params, is_filtered, state, attempts, source_file, source_hash, started_at)
      select s.id, r.id, s.operation, s.exchange, s."from", s."to", s.params, coalesce(s.filtered, false), ${state}, 1, ${file}, ${hash}, clock_timestamp()
        from ${runs} r, jsonb_to_recordset(${rows}::jsonb)
               as s(id bigint, operation text, exchange text, "from" date, "to" date, params jsonb, filtered boolean)
       where r.id = ${runId} and r.state = 'running'
      on conflict (id) do nothing returning id
    )
    select id::int from inserted union all select id::int from ${windows} where id = any (${sql.param(ids)}::bigint[])
     order by id`);
  return inserted.rows.map(({ id }, at) => ({
    id,
    runId,
    filtered: false,
    ...(parts[at] as (typeof parts)[number]),
    instruments: [],
    variant: '',
  }));
}

/**
 * Inserts a window for each of some copied responses, which have none in this database. @returns the windows by
 * response.
 */
export async function insertCopied(
  tx: NodePgDatabase,
  runId: number,
  ids: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (ids.length === 0) return new Map();
  const state: WindowAfter<'plan'> = 'skipped';
  const inserted = await tx.execute<{ id: number }>(sql`
    insert into ${windows}
      (run_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, state, error, source_file, finished_at)
    select ${runId}, a.operation, a.exchange, a.from_date, a.to_date, a.instruments, a.params, a.variant, a.is_filtered, ${state},
           'its response is a copy, and was folded with the others about its days', a.params->>'file', statement_timestamp()
      from unnest(${sql.param(ids)}::bigint[]) with ordinality as i(id, position) join ${responses} a on a.id = i.id order by i.position
    returning id::int`);
  const insertedIds = inserted.rows.map(({ id }) => id).sort((a, b) => a - b);
  return new Map(ids.map((id, at) => [id, insertedIds[at] as number]));
}

/** Inserts windows of shorter ranges that replace one that is split. */
export async function insertPieces(
  tx: NodePgDatabase,
  parentId: number,
  pieces: readonly Pick<NewWindow, 'from' | 'to'>[],
): Promise<void> {
  await tx.execute(sql`
    insert into ${windows}
      (run_id, parent_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, state)
    select w.run_id, w.id, w.operation, w.exchange, piece."from", piece."to", w.instruments, w.params, w.variant, w.is_filtered, ${PLANNED}
      from ${windows} w, jsonb_to_recordset(${JSON.stringify(pieces)}::jsonb) as piece("from" date, "to" date)
     where w.id = ${parentId}`);
}
