import type { PoolClient } from 'pg';
import type { DayRange } from '../../../core/days.ts';
import { listedInFull, namesFilling } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import type { Transaction } from '../../database/transaction.ts';
import { hasLaterOrOwnLoad, type LoadScope } from '../../state/loads/other-loads.ts';
import { loadedResponsesOf, type ResponseToFold } from '../../state/responses/to-fold.ts';
import type { DecidedDays } from '../../state/withdrawals.ts';
import {
  applyStaged,
  copyNewDays,
  daysOf,
  daysOfRows,
  type LoadOfResponse,
  type Merged,
  mergeFew,
  stageRows,
  type TableResponse,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import { type Folding, foldLate, keptReader, type ReadAgain, tableReader } from './fold.ts';
import { foldSql, hasRequestedSymbol } from './fold-sql.ts';

// A response is merged if it was loaded after all others about its rows, and folded with them if not.

/** The part of a response that is about one table, and the load that stores it. */
interface LoadOfTable extends TableResponse, LoadOfResponse, DayRange {
  readonly table: TableDefinition;
  readonly exchange: string;
  readonly readAgain: ReadAgain;
  /** The instruments that were requested; none where that is the whole exchange. */
  readonly instruments: readonly string[];
  /** All days of the rows and those that the response lists in full. */
  readonly days: readonly string[];
}

/** What became of one table's records, and the days whose withdrawals were decided again. */
type MergedTable = Merged & { readonly decided: DecidedDays | null };

/**
 * Merges a response into a table, so that the rows are the same as if all responses loaded so far had been loaded in
 * the order in which they were fetched. Nearly always this one was fetched last and is simply merged. If not, the kept
 * responses of its days are folded. Call it inside a transaction, after `ensureStage` and with the locks held, so that it
 * sees everything that was loaded before.
 *
 * @throws PipelineError `unreadable`; `database` if one of these responses is not kept.
 */
export async function mergeOrFold(
  tx: Transaction,
  load: LoadOfTable & {
    /** True if it is known that no later response was loaded, nor this one. */
    readonly isLast: boolean;
  },
): Promise<MergedTable> {
  const { client } = tx;
  const { table, rows, days, position } = load;
  const scope = scopeOf(load);
  const lists = listedInFull(table);
  const isLast = load.isLast || !(await hasLaterOrOwnLoad(tx, scope, position));
  if (isLast) {
    const added =
      lists === 'days' ? await copyNewDays(client, load, days) : await mergeFew(client, table, load, load);
    if (added !== null) return { ...added, decided: null };
  }
  await stageRows(client, table, rows);
  // Where no response withdraws rows, a record that is new or certainly older leads to the same rows in any order.
  if (isLast || (lists === 'none' && !(await hasConflict(client, load)))) {
    return { ...(await applyStaged(client, table, load, load, mergeSql(table, days))), decided: null };
  }
  return foldLate(tx, load, await foldingOf(tx, load, scope));
}

async function hasConflict(
  client: PoolClient,
  { table, days, fetchedAt }: Pick<LoadOfTable, 'table' | 'days' | 'fetchedAt'>,
): Promise<boolean> {
  const found = await client.query(foldSql(table, days).hasConflict, [fetchedAt.toISOString()]);
  return (found.rowCount ?? 0) > 0;
}

/** The days that a response is about, of a table of which responses list days in full; else null. */
const daysAbout = ({ table, rows, fullSet }: Pick<LoadOfTable, 'table' | 'rows' | 'fullSet'>) =>
  listedInFull(table) === 'days' && table.dateColumn !== null
    ? [...new Set([...daysOfRows(table, rows), ...daysOf(fullSet)])].sort()
    : null;

/** The scope of a response, as far as one table is concerned. */
export function scopeOf(load: Pick<LoadOfTable, 'table' | 'exchange' | 'rows' | 'fullSet'>): LoadScope {
  const days = daysAbout(load);
  const [from, to] = [days?.[0], days?.at(-1)];
  return {
    operations: namesFilling([load.table]),
    exchange: load.exchange,
    days: from === undefined || to === undefined ? null : { from, to },
  };
}

/** All responses that may be about the rows of a late one, and this one among them. */
async function foldingOf(tx: Transaction, load: LoadOfTable, scope: LoadScope): Promise<Folding> {
  const { table, exchange, position, fetchedAt, readAgain, maxWithdrawShare, runId, loadId } = load;
  const isOfRecords = listedInFull(table) === 'none';
  const day = table.fields.find(({ column }) => column === table.dateColumn);
  const isOfInstruments = isOfRecords && hasRequestedSymbol(table) && load.instruments.length > 0;
  const about = {
    ...scope,
    instruments: isOfInstruments ? load.instruments.map((one) => one.toUpperCase()) : null,
    // Where the day of a row comes from the request, only requests for the same days can list it.
    near: isOfRecords && day !== undefined && day.from !== 'response' ? load : null,
  };
  const others = (await loadedResponsesOf(tx, about, position)).filter((one) => one.position !== position);
  const own = { responseId: 0, position, fetchedAt: fetchedAt.toISOString(), load: { runId, loadId } };
  const readKept = tableReader(keptReader(tx, readAgain), table);
  return {
    table,
    exchange,
    days: daysAbout(load),
    instruments: null,
    maxWithdrawShare,
    responses: [...others, own].sort((one, other) => (one.position < other.position ? -1 : 1)),
    read: async (one: ResponseToFold) => (one.position === position ? load : readKept(one)),
  };
}
