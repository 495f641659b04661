import { type SQL, sql } from 'drizzle-orm';
import { today } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { transaction } from '../../load/database/transaction.ts';
import { type AnswerFilter, matches } from '../../load/state/copy-answers.ts';
import { deleteRun, insertRun, setRunRange } from '../../load/state/runs.ts';
import { insertReplayWindows, insertRereadWindows } from '../../load/state/windows.ts';
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
 * alone could bring back what a newer one has replaced.
 *
 * @param undated operations whose answers know no days.
 */
const chosenAndNewer = (where: SQL, undated: readonly string[]) => sql`
  with recursive chosen(id) as (
    select r.id from etl.responses r where ${where}
    union
    select k.id from chosen c join etl.responses a on a.id = c.id
      join etl.responses k on k.operation = a.operation and k.exchange = a.exchange and k.part = a.part
     where (k.loaded_at, k.id) > (a.loaded_at, a.id)
       and (a.operation = any(${sql.param([...undated])}) or (k.from_date <= a.to_date and k.to_date >= a.from_date))
       and (k.instruments = '{}' or a.instruments = '{}' or k.instruments && a.instruments)
  ) select id from chosen`;

/** An answer that something was refused of, and that is still open, in its own window or a replay's. */
const HAS_REJECTS = sql`exists (
  select from etl.rejects j join etl.windows o on o.id = j.window_id
   where j.resolved_at is null and (o.id = r.window_id or o.response_id = r.id))`;

/** Windows whose refused records are open and whose answer is not kept. */
const unkept = (where: SQL) => sql`
  select r.id from etl.windows r
   where ${where} and r.id in (select window_id from etl.rejects where resolved_at is null)
     and not exists (select from etl.responses k where k.window_id = r.id or k.id = r.response_id)
     -- Rows of files are read by their header: they are read again by importing the file again.
     and r.source_file is null`;

export interface ReplayOptions {
  readonly rejectsOnly?: boolean;
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
  { rejectsOnly = false }: ReplayOptions = {},
): Promise<number | null> {
  checkRange(filter);
  const fresh = await freshLanes(context);
  const request: ReplayRequest = { kind: 'replay', ...filter, rejectsOnly, fresh };
  const undated = operations.filter((one) => one.windows.per === 'once').map((one) => one.name);
  const all = Object.values(filter).every((part) => part === undefined) && !rejectsOnly;
  // Chosen all together they need no search for newer ones.
  const chosen = all
    ? sql`select r.id from etl.responses r`
    : chosenAndNewer(rejectsOnly ? sql`${matches(filter)} and ${HAS_REJECTS}` : matches(filter), undated);
  const runId = await reserveRunId(context);
  return transaction(context.db, async (tx) => {
    const day = today(context.clock, context.config.EOD_TIMEZONE);
    const inserted = await insertRun(tx, {
      id: runId,
      kind: 'replay',
      requestedBy: whoAsks(),
      request,
      // Until its windows are known.
      from: day,
      to: day,
    });
    // An earlier try has written it, and only its answer was lost.
    if (inserted === null) return runId;
    await insertReplayWindows(tx, runId, chosen);
    if (rejectsOnly) await insertRereadWindows(tx, runId, unkept(matches(filter)));
    if (await setRunRange(tx, runId)) return runId;
    await deleteRun(tx, runId);
    return null;
  });
}

function checkRange({ from, to }: AnswerFilter): void {
  if (from !== undefined && to !== undefined && from > to) throw usageError('the range is reversed');
}
