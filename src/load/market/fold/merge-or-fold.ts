import type { PoolClient } from 'pg';
import type { DayRange } from '../../../core/days.ts';
import { listedInFull } from '../../../operations/registry.ts';
import type { Row } from '../../../operations/table.ts';
import type { Transaction } from '../../database/transaction.ts';
import { hasLaterLoad, hasLaterOrOwnLoad } from '../../state/loads/other-loads.ts';
import { prunedUpTo } from '../../state/responses/pruned.ts';
import {
  checkNoneLost,
  type FoldScope,
  type ResponseToFold,
  responsesOf,
} from '../../state/responses/to-fold.ts';
import { applyStaged, copyNewDays, daysOf, daysOfRows, mergeFew, stageRows } from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import {
  foldInOrder,
  keptReader,
  type MergedTable,
  type Scope,
  scopeOfDays,
  type TableLoad,
} from './fold.ts';
import { foldSql, hasRequestedSymbol } from './fold-sql.ts';

// A response is merged if it was loaded after all others about its rows, and folded with them if not.

/** What is said of the merge of a response that was loaded after all others about its rows. */
const AS_LAST = { folded: null, ignoredDays: [] } as const;

interface LoadOfDays extends TableLoad, DayRange {
  /** The instruments that were requested; none where that is the whole exchange. */
  readonly instruments: readonly string[];
  /** All days of the rows and those that the response lists in full. */
  readonly days: readonly string[];
}

/**
 * Merges a response into a table, so that the rows are the same as if all responses loaded so far had been loaded in
 * the order in which they were fetched. Nearly always this one was fetched last and is simply merged. If not, the kept
 * responses of its days are read again and folded, and rows that differ from the result are written. Call it inside a
 * transaction, after `ensureStage` and with the locks held, so that it sees everything that was loaded before.
 */
export async function mergeOrFold(
  tx: Transaction,
  load: LoadOfDays & {
    /** True if it is known that no later response was loaded, nor this one. */
    readonly isLast: boolean;
  },
): Promise<MergedTable> {
  const { client } = tx;
  const { table, rows, days, position } = load;
  const sql = mergeSql(table, days);
  const scope = scopeOf(load);
  const isLast = load.isLast || !(await hasLaterOrOwnLoad(tx, scope, position));
  if (isLast) {
    const added =
      scope.lists === 'days'
        ? await copyNewDays(client, load, days)
        : await mergeFew(client, table, load, load);
    if (added !== null) return { ...added, ...AS_LAST };
  }
  await stageRows(client, table, rows);
  const mergeAsLast = async () => ({ ...(await applyStaged(client, table, load, load, sql)), ...AS_LAST });
  if (isLast) return mergeAsLast();
  // Where no response withdraws rows, a record that is new or certainly older leads to the same rows in any order.
  if (scope.lists === 'none' && !(await hasConflict(client, load))) return mergeAsLast();
  const few = scope.lists === 'none';
  const day = table.fields.find(({ column }) => column === table.dateColumn);
  const instruments = few && hasRequestedSymbol(table) && load.instruments.length > 0;
  return foldResponses(tx, load, {
    ...scope,
    instruments: instruments ? load.instruments.map((one) => one.toUpperCase()) : null,
    // Where the day of a row comes from the request, only requests for the same days can list it.
    near: few && day !== undefined && day.from !== 'response' ? load : null,
  });
}

async function hasConflict(
  client: PoolClient,
  { table, days, fetchedAt }: Pick<LoadOfDays, 'table' | 'days' | 'fetchedAt'>,
): Promise<boolean> {
  const found = await client.query(foldSql(table, days).hasConflict, [fetchedAt.toISOString()]);
  return (found.rowCount ?? 0) > 0;
}

/**
 * Folds the responses about some days anew where a later response was loaded.
 *
 * @returns null if there was none; then nothing was written.
 */
export async function foldIfLate(
  tx: Transaction,
  load: Omit<TableLoad, 'rows'>,
): Promise<MergedTable | null> {
  const scope = scopeOf({ ...load, rows: [] });
  if (!(await hasLaterLoad(tx, scope, load.position))) return null;
  return foldResponses(tx, { ...load, rows: null }, { ...scope, instruments: null });
}

/** The scope of a response, as far as one table is concerned. */
export function scopeOf({
  table,
  exchange,
  rows,
  fullSet,
}: Pick<TableLoad, 'table' | 'exchange' | 'rows' | 'fullSet'>): Scope {
  const isDated = listedInFull(table) === 'days' && table.dateColumn !== null;
  return scopeOfDays(table, exchange, isDated ? [...daysOfRows(table, rows), ...daysOf(fullSet)] : null);
}

/**
 * Applies all responses that may be about these rows, in the order in which they were fetched, to temporary tables,
 * with the statements that apply them to `market`; then writes the stored rows that differ from the result.
 *
 * Where responses are pruned, it begins with the rows that they left.
 *
 * @throws PipelineError `unreadable`; `database` if one of them is neither kept nor pruned.
 */
async function foldResponses(
  tx: Transaction,
  load: Omit<TableLoad, 'rows'> & { readonly rows: readonly Row[] | null },
  scope: Scope & FoldScope,
): Promise<MergedTable> {
  const { position, readAgain } = load;
  const pruned = await prunedUpTo(tx, scope);
  const isLoading = load.rows !== null;
  await checkNoneLost(tx, scope, isLoading ? position : null);
  const responses: ResponseToFold[] = (await responsesOf(tx, scope)).filter(
    (one) => one.load !== null && !(isLoading && one.position === position),
  );
  if (isLoading)
    responses.push({ responseId: null, position, fetchedAt: load.fetchedAt.toISOString(), load: null });
  responses.sort((one, other) => (one.position < other.position ? -1 : 1));
  return foldInOrder(tx, load, scope, { responses, pruned, read: keptReader(tx, readAgain) });
}
