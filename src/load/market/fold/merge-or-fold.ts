import type { PoolClient } from 'pg';
import type { DayRange } from '../../../core/days.ts';
import { messageOf, PipelineError } from '../../../core/errors.ts';
import { listedInFull } from '../../../operations/registry.ts';
import type { Rows } from '../../../operations/rows.ts';
import type { Transaction } from '../../database/transaction.ts';
import { type KeptAnswer, readKeptAnswer } from '../../state/answers/answers.ts';
import { prunedUpTo } from '../../state/answers/pruned.ts';
import { type AnswerToFold, answersOf, checkNoneLost, type FoldScope } from '../../state/answers/to-fold.ts';
import { hasLaterLoad } from '../../state/loads/other-loads.ts';
import {
  applyStaged,
  copyNewDays,
  daysOf,
  daysOfRows,
  mergeFew,
  stageRows,
  type TableAnswer,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import {
  foldInOrder,
  type MergedTable,
  partOf,
  type ReadAgain,
  type Scope,
  scopeOfDays,
  type TableLoad,
} from './fold.ts';
import { foldSql, hasAskedSymbol } from './fold-sql.ts';

// An answer is merged if it was loaded after all others about its rows, and folded with them if not.

/** What is said of the merge of an answer that was loaded after all others about its rows. */
const AS_LAST = { folded: null, ignoredDays: [] } as const;

interface LoadOfDays extends TableLoad, DayRange {
  /** The instruments that were requested; none where that is the whole exchange. */
  readonly instruments: readonly string[];
  /** All days of the rows and those that the answer lists in full. */
  readonly days: readonly string[];
}

/**
 * Merges an answer into a table, so that the rows are the same as if all answers loaded so far had been loaded in the
 * order in which they were fetched. Nearly always this one was fetched last and is simply merged. If not, the kept
 * answers of its days are read again and folded, and rows that differ from the result are written. Call it inside a
 * transaction, after `ensureStage` and with the locks held, so that it sees everything that was loaded before.
 */
export async function mergeOrFold(
  tx: Transaction,
  load: LoadOfDays & {
    /** Is it known that no later answer was loaded, nor this one? */
    readonly isLast: boolean;
  },
): Promise<MergedTable> {
  const { client } = tx;
  const { table, rows, days, place } = load;
  const sql = mergeSql(table, days);
  const scope = scopeOf(load);
  const isLast = load.isLast || !(await hasLaterLoad(tx, scope, place, { orOwn: true }));
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
  // Where no answer withdraws rows, a record that is new or certainly older leads to the same rows in any order.
  if (scope.lists === 'none' && !(await hasConflict(client, load))) return mergeAsLast();
  const few = scope.lists === 'none';
  const day = table.fields.find(({ column }) => column === table.dateColumn);
  const instruments = few && hasAskedSymbol(table) && load.instruments.length > 0;
  return foldAnswers(tx, load, {
    ...scope,
    instruments: instruments ? load.instruments.map((one) => one.toUpperCase()) : null,
    // Where the day of a row comes from the request, only requests for the same days can list it.
    near: few && day !== undefined && day.from !== 'answer' ? load : null,
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
 * Folds the answers about some days anew where a later answer was loaded.
 *
 * @returns null if there was none; then nothing was written.
 */
export async function foldIfLate(
  tx: Transaction,
  load: Omit<TableLoad, 'rows'>,
): Promise<MergedTable | null> {
  const scope = scopeOf({ ...load, rows: [] });
  if (!(await hasLaterLoad(tx, scope, load.place))) return null;
  return foldAnswers(tx, { ...load, rows: null }, { ...scope, instruments: null });
}

/** The scope of an answer, as far as one table is concerned. */
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
 * Applies all answers that may be about these rows, in the order in which they were fetched, to temporary tables, with
 * the statements that apply them to `market`; then writes the stored rows that differ from the result.
 *
 * Where answers are pruned, it begins with the rows that they left.
 *
 * @throws PipelineError `unreadable`; `database` if one of them is neither kept nor pruned.
 */
async function foldAnswers(
  tx: Transaction,
  load: Omit<TableLoad, 'rows'> & { readonly rows: Rows | null },
  scope: Scope & FoldScope,
): Promise<MergedTable> {
  const { place, readAgain } = load;
  const pruned = await prunedUpTo(tx, scope);
  const isLoading = load.rows !== null;
  await checkNoneLost(tx, scope, isLoading ? place : null);
  const answers: AnswerToFold[] = (await answersOf(tx, scope)).filter(
    (one) => one.load !== null && !(isLoading && one.place === place),
  );
  if (isLoading) answers.push({ answerId: null, place, fetchedAt: load.fetchedAt.toISOString(), load: null });
  answers.sort((one, other) => (one.place < other.place ? -1 : 1));
  const readAnswer = (answerId: number) => readTable(tx, load, answerId, readAgain);
  return foldInOrder(tx, load, scope, { answers, pruned, readAnswer });
}

/** Names a kept answer that cannot be read any more. */
export const unreadable = ({ operation, exchange, place }: KeptAnswer, error: unknown) =>
  new PipelineError(
    `a kept answer about the same rows, ${operation} ${exchange} of ${place}, cannot be read any more: ${messageOf(error)}`,
    { kind: 'unreadable', cause: error },
  );

/** @throws PipelineError if the code of today cannot read the answer: without it, it is not known what the others left. */
async function readTable(
  tx: Transaction,
  { table }: Pick<TableLoad, 'table'>,
  answerId: number,
  readAgain: ReadAgain,
): Promise<TableAnswer> {
  const answer = await readKeptAnswer(tx, answerId);
  if (answer === null) throw new Error(`answer ${answerId} was pruned while its day was locked`);
  const read = await readAgain(answer).catch((error) => {
    throw unreadable(answer, error);
  });
  return partOf(read, table);
}
