import { usageError } from '../../core/errors.ts';
import { transaction } from '../../load/database/transaction.ts';
import { type AnswerFilter, FILTER, filterValues } from '../../load/state/copy-answers.ts';
import { operations } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Context } from '../context.ts';
import { reserveRunId, whoAsks } from '../runs/runs.ts';

/** What a replay was asked to do; kept with its run. */
export interface ReplayRequest extends AnswerFilter {
  readonly kind: 'replay';
  /** Only answers, and records, of which something was refused and not settled since. */
  readonly rejectsOnly: boolean;
  /** Lanes whose tables were empty: every answer is loaded, so that history comes out the same. */
  readonly fresh: readonly string[];
}

const laneNames = new Map<string, string>();

/**
 * Operations that fill the same tables share a lane, in which answers are loaded one after the
 * other; lanes go side by side. Named by the first operation of it.
 */
export function laneOf(operation: string): string {
  const known = laneNames.get(operation);
  if (known !== undefined) return known;
  const lane = new Set<TableDefinition>();
  const members = new Set<string>();
  const start = operations.find((one) => one.name === operation);
  for (const { table } of start?.shapes ?? []) lane.add(table);
  for (let size = -1; size !== members.size; ) {
    size = members.size;
    for (const one of operations) {
      if (!one.shapes.some(({ table }) => lane.has(table))) continue;
      members.add(one.name);
      for (const { table } of one.shapes) lane.add(table);
    }
  }
  const name = [...members].sort()[0] ?? operation;
  laneNames.set(operation, name);
  return name;
}

/** Tables of an exchange hold nothing yet: there is no newer row an older answer could disturb. */
async function freshLanes({ db }: Context): Promise<string[]> {
  const pairs = await db.pool.query<{ operation: string; exchange: string }>(
    'select distinct operation, exchange from etl.responses order by 1, 2',
  );
  const filled = new Set<string>();
  for (const { operation, exchange } of pairs.rows) {
    const tables = operations.find((one) => one.name === operation)?.shapes.map((shape) => shape.table.name);
    for (const table of tables ?? []) {
      const found = await db.pool.query(`select from market."${table}" where exchange = $1 limit 1`, [
        exchange,
      ]);
      if (found.rowCount === 1) filled.add(`${laneOf(operation)}|${exchange}`);
    }
  }
  const lanes = new Set(pairs.rows.map((pair) => `${laneOf(pair.operation)}|${pair.exchange}`));
  return [...lanes].filter((lane) => !filled.has(lane));
}

/**
 * The chosen answers and every newer one that speaks of the same days: loading an older answer
 * alone could bring back what a newer one has replaced. $5: operations whose answers know no days.
 */
const CHOSEN = (where: string) => `
  with recursive chosen(id) as (
    select r.id from etl.responses r where ${where}
    union
    select k.id from chosen c join etl.responses a on a.id = c.id
      join etl.responses k on k.operation = a.operation and k.exchange = a.exchange and k.part = a.part
     where (k.loaded_at, k.id) > (a.loaded_at, a.id)
       and (a.operation = any($5) or (k.from_date <= a.to_date and k.to_date >= a.from_date))
       and (k.instruments = '{}' or a.instruments = '{}' or k.instruments && a.instruments)
  )`;

/** An answer that something was refused of, and that is still open, in its own window or a replay's. */
const HAS_REJECTS = `exists (
  select from etl.rejects j join etl.windows o on o.id = j.window_id
   where j.resolved_at is null and (o.id = r.window_id or o.response_id = r.id))`;

export interface ReplayOptions {
  readonly rejectsOnly?: boolean;
  /** From `reserveRunId`: planned again under this number, the run is made only once. */
  readonly id?: number;
}

/**
 * Writes a run of kind `replay` with a window for each kept answer, in the order they were loaded,
 * and for rejects without an answer one for each window that refused them.
 *
 * @returns the run's number, or null when there is nothing to replay.
 */
export async function planReplay(
  context: Context,
  filter: AnswerFilter,
  { rejectsOnly = false, id }: ReplayOptions = {},
): Promise<number | null> {
  checkRange(filter);
  const fresh = await freshLanes(context);
  const request: ReplayRequest = { kind: 'replay', ...filter, rejectsOnly, fresh };
  const undated = operations.filter((one) => one.windows.per === 'once').map((one) => one.name);
  const all = Object.values(filter).every((part) => part === undefined) && !rejectsOnly;
  // Chosen all together they need no search for newer ones.
  const chosen = all
    ? `with chosen(id) as (select r.id from etl.responses r where ${FILTER} and $5::text[] is not null)`
    : CHOSEN(rejectsOnly ? `${FILTER} and ${HAS_REJECTS}` : FILTER);
  const reserved = id ?? (await reserveRunId(context));
  return transaction(context.db, async (client) => {
    const run = await client.query<{ id: number }>(
      `insert into etl.runs (id, kind, requested_by, request, from_date, to_date)
       values ($3, 'replay', $1, $2, current_date, current_date) on conflict (id) do nothing returning id::int`,
      [whoAsks(), JSON.stringify(request), reserved],
    );
    const runId = run.rows[0]?.id;
    // An earlier try has written it, and only its answer was lost.
    if (runId === undefined) return reserved;
    await client.query(
      `${chosen}
       insert into etl.windows (run_id, operation, exchange, from_date, to_date, instruments, params, part,
         narrowed, source_file, source_hash, response_id)
       select $6, r.operation, r.exchange, r.from_date, r.to_date, r.instruments, r.params, r.part, r.narrowed,
         r.params->>'file', r.hash, r.id
       from chosen c join etl.responses r on r.id = c.id order by r.loaded_at, r.id`,
      [...filterValues(filter), undated, runId],
    );
    if (rejectsOnly) await client.query(RECORDS, [...filterValues(filter), runId]);
    await client.query(
      `update etl.responses r set run_id = w.run_id, window_id = w.id from etl.windows w
        where w.run_id = $1 and w.response_id = r.id and r.window_id = 0`,
      [runId],
    );
    const range = await client.query(
      `update etl.runs r set from_date = w.first, to_date = w.last
         from (select min(from_date) as first, max(to_date) as last from etl.windows where run_id = $1) w
        where r.id = $1 and w.first is not null`,
      [runId],
    );
    if (range.rowCount === 1) return runId;
    await client.query('delete from etl.runs where id = $1', [runId]);
    return null;
  });
}

/** Windows for records whose answer is not kept; `parent_id` is the window that refused them. */
const RECORDS = `
  insert into etl.windows (run_id, parent_id, operation, exchange, from_date, to_date, instruments, params, part, narrowed)
  select $5, r.id, r.operation, r.exchange, r.from_date, r.to_date, r.instruments, r.params, r.part, true
    from etl.windows r
   where ${FILTER} and r.id in (select window_id from etl.rejects where resolved_at is null)
     and not exists (select from etl.responses k where k.window_id = r.id or k.id = r.response_id)
     -- Rows of files are read by their header: they are read again by importing the file again.
     and r.source_file is null
   order by r.id`;

function checkRange({ from, to }: AnswerFilter): void {
  if (from !== undefined && to !== undefined && from > to) throw usageError('the range is reversed');
}
