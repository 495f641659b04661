import { today } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { transaction } from '../../load/database/transaction.ts';
import { hasRows } from '../../load/market/lookups.ts';
import { insertReplayWindows, insertRereadWindows } from '../../load/state/new-windows.ts';
import { windowsWithUnkeptRejects } from '../../load/state/rejects.ts';
import { type AnswerFilter, answeredPairs, answersToReplay } from '../../load/state/responses.ts';
import { deleteRun, insertRun, setRunRange } from '../../load/state/runs.ts';
import { operations } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Context } from '../context.ts';
import { reserveRunId, whoAsks } from '../runs/runs.ts';

/** What a replay was asked to do; kept with its run. */
export interface ReplayRequest extends AnswerFilter {
  readonly kind: 'replay';
  /** Only answers, and records, of which something was refused that is still open. */
  readonly rejectsOnly: boolean;
  /** Groups of tables, with their exchange, that were empty: every answer is loaded, so that history comes out the same. */
  readonly fresh: readonly string[];
}

const groupNames = new Map<string, string>();

/**
 * Operations that fill the same tables are a group, named by its first operation. Answers of a group are
 * loaded one after the other; groups are worked on side by side.
 */
export function tableGroupOf(operation: string): string {
  const known = groupNames.get(operation);
  if (known !== undefined) return known;
  const tables = new Set<TableDefinition>();
  const members = new Set<string>();
  const start = operations.find((one) => one.name === operation);
  for (const { table } of start?.shapes ?? []) tables.add(table);
  for (let size = -1; size !== members.size; ) {
    size = members.size;
    for (const one of operations) {
      if (!one.shapes.some(({ table }) => tables.has(table))) continue;
      members.add(one.name);
      for (const { table } of one.shapes) tables.add(table);
    }
  }
  const name = [...members].sort()[0] ?? operation;
  groupNames.set(operation, name);
  return name;
}

/** Groups and exchanges whose tables hold nothing yet: there is no newer row an older answer could disturb. */
async function freshGroups({ db }: Context): Promise<string[]> {
  const pairs = await answeredPairs(db.drizzle);
  const filled = new Set<string>();
  for (const { operation, exchange } of pairs) {
    const shapes = operations.find((one) => one.name === operation)?.shapes ?? [];
    for (const { table } of shapes) {
      if (await hasRows(db.pool, table.name, exchange)) filled.add(`${tableGroupOf(operation)}|${exchange}`);
    }
  }
  const groups = new Set(pairs.map((pair) => `${tableGroupOf(pair.operation)}|${pair.exchange}`));
  return [...groups].filter((group) => !filled.has(group));
}

interface ReplayOptions {
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
  const fresh = await freshGroups(context);
  const request: ReplayRequest = { kind: 'replay', ...filter, rejectsOnly, fresh };
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
    await insertReplayWindows(tx, runId, answersToReplay(filter, { rejectsOnly }));
    if (rejectsOnly) await insertRereadWindows(tx, runId, windowsWithUnkeptRejects(filter));
    if (await setRunRange(tx, runId)) return runId;
    await deleteRun(tx, runId);
    return null;
  });
}

function checkRange({ from, to }: AnswerFilter): void {
  if (from !== undefined && to !== undefined && from > to) throw usageError('the range is reversed');
}
