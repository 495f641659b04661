import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { ClientBase } from 'pg';
import { today } from '../../core/clock.ts';
import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { type Transaction, transaction } from '../../load/database/transaction.ts';
import { emptyTables, vacuumTables } from '../../load/market/empty-tables.ts';
import { hasRows } from '../../load/market/lookups.ts';
import { lockRebuilds } from '../../load/state/answers/kept.ts';
import { type AnswerFilter, answeredPairs, answersToReplay } from '../../load/state/answers/to-replay.ts';
import { countLoads, countUnkeptLoads } from '../../load/state/loads/loads.ts';
import { lockTables } from '../../load/state/loads/locks.ts';
import { windowsWithUnkeptRejects } from '../../load/state/rejects.ts';
import { insertRun, replaceRebuilds, reserveRunId, setRunRange } from '../../load/state/runs.ts';
import { insertReplayWindows, insertRereadWindows } from '../../load/state/windows/plan.ts';
import { tablesFilledBy } from '../../operations/operation.ts';
import { dataSets, tableGroupOf } from '../../operations/registry.ts';
import type { Context } from '../context.ts';

/** What a replay is to do; stored with its run. */
export interface ReplayRequest extends AnswerFilter {
  readonly kind: 'replay';
  /** Only answers with open rejects, and the rejected records whose answer is not kept. */
  readonly rejectsOnly: boolean;
  /** Groups (`<operation>|<exchange>`) whose tables were empty: every answer is loaded, to get the same history. */
  readonly fresh: readonly string[];
}

/** A group of operations, and an exchange for which answers of them are kept. */
interface Group {
  readonly name: string;
  readonly operations: readonly string[];
  readonly exchange: string;
}

/** A group of which every kept answer is loaded, into empty tables. */
interface FreshGroup extends Group {
  /** Did its tables have rows before? Then the state that refers to these is removed too. */
  readonly emptied: boolean;
}

async function keptGroups({ db }: Context, { operations: named, exchanges }: AnswerFilter): Promise<Group[]> {
  const groups = new Map<string, Group>();
  for (const { operation, exchange } of await answeredPairs(db.drizzle)) {
    if (exchanges !== undefined && !exchanges.includes(exchange)) continue;
    const { name: first, members } = tableGroupOf(operation);
    if (named !== undefined && !members.some((member) => named.includes(member))) continue;
    groups.set(`${first}|${exchange}`, { name: `${first}|${exchange}`, operations: members, exchange });
  }
  return [...groups.values()];
}

/**
 * The groups whose tables are empty, so that there is no newer row that an older answer could replace.
 *
 * @throws PipelineError `usage` for an empty table whose history is not empty: somebody emptied it, and loading it
 *   again would write the history twice.
 */
async function freshGroups(
  db: NodePgDatabase,
  client: Pick<ClientBase, 'query'>,
  groups: readonly Group[],
): Promise<FreshGroup[]> {
  const fresh: FreshGroup[] = [];
  for (const group of groups) {
    let filled = false;
    for (const dataSet of dataSets) {
      const { name } = dataSet;
      if (!group.operations.includes(name)) continue;
      for (const table of tablesFilledBy(dataSet)) {
        const { live, history, lost } = await hasRows(client, table, group.exchange);
        if (lost) {
          throw usageError(
            `market.${table.name} (${name}) holds no row of ${group.exchange}, but its history does`,
            'rebuild',
          );
        }
        filled ||= live || history;
      }
    }
    if (filled) continue;
    const loads = await countLoads(db, group);
    // If no load ever brought a row, nothing was emptied, and outdated answers need not be loaded.
    if (loads.all === 0 || loads.withRows > 0) fresh.push({ ...group, emptied: loads.withRows > 0 });
  }
  return fresh;
}

/**
 * Locks the tables that are to be emptied until the transaction ends, so that what is listed and deleted from now on is
 * what all loads have committed. Cancels other rebuilds of them before: windows are locked before tables, as in loads.
 *
 * @param rebuild whether they are emptied whatever they hold; if not, only those that are empty still.
 * @returns the groups of which every answer is loaded.
 */
async function lockFreshGroups(
  tx: Transaction,
  groups: readonly Group[],
  found: readonly FreshGroup[],
  { runId, rebuild }: { readonly runId: number; readonly rebuild: boolean },
): Promise<readonly FreshGroup[]> {
  for (let fresh = found; ; ) {
    await tx.client.query('savepoint unlocked');
    const emptied = fresh.filter((group) => group.emptied);
    for (const group of emptied) await replaceRebuilds(tx, runId, group);
    await lockTables(tx, emptied);
    if (rebuild || emptied.length === 0) return fresh;
    const names = new Set(fresh.map(({ name }) => name));
    const still = (await freshGroups(tx, tx.client, groups)).filter(({ name }) => names.has(name));
    if (still.length === fresh.length) return fresh;
    // A load has filled some of them: their locks are given back, and other rebuilds of them go on.
    await tx.client.query('rollback to savepoint unlocked');
    fresh = still;
  }
}

/** @throws PipelineError `usage` if rows would be lost because the answers they came from are not kept. */
async function checkAllKept(tx: Transaction, groups: readonly Group[]): Promise<void> {
  for (const group of groups) {
    const unkept = await countUnkeptLoads(tx, group);
    if (unkept === 0) continue;
    throw usageError(
      `the answers of ${unkept} loads of ${group.operations.join(', ')} ${group.exchange} are not kept: their rows would be lost, so nothing was emptied`,
    );
  }
}

interface ReplayOptions {
  readonly rejectsOnly?: boolean;
  /** Empty the tables and their history first, and load every kept answer. */
  readonly rebuild?: boolean;
  readonly requestedBy?: string;
}

/**
 * Writes a run of kind `replay` with a window for each kept answer, in the order of their calls. For rejects whose
 * answer is not kept, it has one for each window that rejected them.
 *
 * @returns the run's number, or null if there is nothing to replay.
 * @throws PipelineError `usage` if the tables cannot be rebuilt.
 */
export async function planReplay(
  context: Context,
  asked: AnswerFilter,
  { rejectsOnly = false, rebuild = false, requestedBy = requesterName() }: ReplayOptions = {},
): Promise<number | null> {
  const groups = await keptGroups(context, asked);
  const found = rebuild
    ? groups.map((group) => ({ ...group, emptied: true }))
    : await freshGroups(context.db.drizzle, context.db.pool, groups);
  // Whole tables are emptied, so all answers of the operations that fill them are needed.
  const filter = rebuild
    ? { exchanges: asked.exchanges, operations: [...new Set(groups.flatMap((group) => group.operations))] }
    : asked;
  const runId = await reserveRunId(context.db.drizzle);
  let emptied: readonly FreshGroup[] = [];
  const planned = await transaction(context.db, async (tx) => {
    // Of two rebuilds that are planned at once, the second one finds the first.
    if (found.some((group) => group.emptied)) await lockRebuilds(tx);
    // Before the answers are listed: those of loads under way would be missing in the list, and their rows be deleted.
    const fresh = await lockFreshGroups(tx, groups, found, { runId, rebuild });
    emptied = fresh.filter((group) => group.emptied);
    if (rebuild) await checkAllKept(tx, groups);
    const request: ReplayRequest = {
      kind: 'replay',
      ...filter,
      rejectsOnly: rejectsOnly && !rebuild,
      fresh: fresh.map(({ name }) => name),
    };
    const day = today(context.clock, context.config.EOD_TIMEZONE);
    const inserted = await insertRun(tx, {
      id: runId,
      kind: 'replay',
      requestedBy,
      request,
      // Replaced below, when its windows are known.
      from: day,
      to: day,
    });
    // An earlier try has written it, but the connection was lost before it was confirmed.
    if (inserted === null) return runId;
    await insertReplayWindows(tx, runId, answersToReplay(filter, rejectsOnly));
    if (rejectsOnly) await insertRereadWindows(tx, runId, windowsWithUnkeptRejects(filter));
    if (!(await setRunRange(tx, runId))) {
      await tx.client.query('rollback to savepoint unlocked');
      return null;
    }
    for (const group of emptied) await emptyTables(tx, { ...group, runId });
    return runId;
  });
  if (planned !== null && emptied.length > 0) {
    const operations = emptied.flatMap((group) => group.operations);
    await vacuumTables(context.db, operations).catch((error) =>
      context.log.warn({ err: error }, 'could not vacuum the emptied tables; they will take twice the space'),
    );
  }
  return planned;
}
