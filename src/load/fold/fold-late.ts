import type { PoolClient } from 'pg';
import type { DayRange } from '../../core/days.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { listedInFull, namesFilling } from '../../operations/registry.ts';
import type { Transaction } from '../../postgres/transaction.ts';
import { type FoldScope, readLoadedResponses } from '../../state/responses/to-fold.ts';
import {
  applyStaged,
  daysOfRows,
  type LoadOfResponse,
  listFullDays,
  type StoredRows,
  stageRows,
  type TableResponse,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import { type AppliedResponse, foldLate, keptReader, partAbout, type ReadAgain } from './fold.ts';
import { foldSql, hasRequestedSymbol } from './fold-sql.ts';

/** The part of a response that is about one table, and the load that stores it. */
export interface ResponseOfTable extends TableResponse, LoadOfResponse, DayRange {
  readonly table: TableDefinition;
  readonly exchange: string;
  readonly readAgain: ReadAgain;
  /** The instruments that were requested; none where that is the whole exchange. */
  readonly instruments: readonly string[];
  /** All days of the rows and those that the response lists in full. */
  readonly days: readonly string[];
}

/** The days that a response is about, of a table of which responses list days in full; else null. */
const daysAbout = ({ table, rows, fullSet }: ResponseOfTable) =>
  listedInFull(table) === 'days' && table.dateColumn !== null
    ? [...new Set([...daysOfRows(table, rows), ...listFullDays(fullSet)])].sort()
    : null;

/** Which responses may be about the same rows as one. */
export function scopeOfRows(response: ResponseOfTable): FoldScope {
  const { table, exchange, instruments } = response;
  const days = daysAbout(response);
  const [from, to] = [days?.[0], days?.at(-1)];
  const isOfRecords = listedInFull(table) === 'none';
  const day = table.fields.find(({ column }) => column === table.dateColumn);
  // Where the key has the requested instrument, responses about others have no row in common.
  const isOfInstruments = isOfRecords && hasRequestedSymbol(table) && instruments.length > 0;
  return {
    operations: namesFilling([table]),
    exchange,
    days: from === undefined || to === undefined ? null : { from, to },
    instruments: isOfInstruments ? instruments.map((instrument) => instrument.toUpperCase()) : null,
    // Where the day of a row comes from the request, only requests for the same days can list it.
    near: isOfRecords && day !== undefined && day.from !== 'response' ? response : null,
  };
}

/**
 * Stores a response that was fetched before others about the same rows: folds the kept responses of its days. Call it
 * inside a transaction, after `ensureStage` and with the locks held, so that it sees everything that was loaded before.
 *
 * @throws PipelineError `unreadable`; `database` if one of these responses is not kept.
 */
export async function foldLateResponse(
  tx: Transaction,
  late: ResponseOfTable,
  scope: FoldScope,
): Promise<StoredRows> {
  const { client } = tx;
  const { table, rows, days } = late;
  await stageRows(client, table, rows);
  // Where no response withdraws rows, a record that is new or certainly older leads to the same rows in any order.
  if (listedInFull(table) === 'none' && !(await hasConflict(client, late)))
    return {
      ...(await applyStaged(client, { table, response: late, load: late, sql: mergeSql(table, days) })),
      decided: null,
    };
  const responses = await listResponses(tx, late, scope);
  const read = keptReader(tx, late.readAgain);
  return foldLate(tx, late, daysAbout(late), async (copy) => {
    for (const response of responses)
      await copy.apply(
        response,
        response.position === late.position ? late : partAbout(await read(response.responseId), table),
      );
  });
}

async function hasConflict(
  client: PoolClient,
  { table, days, fetchedAt }: ResponseOfTable,
): Promise<boolean> {
  const conflicts = await client.query(foldSql(table, days).hasConflict, [fetchedAt.toISOString()]);
  return (conflicts.rowCount ?? 0) > 0;
}

/** All responses that may be about the rows of a late one, and this one among them, in their order. */
async function listResponses(
  tx: Transaction,
  { position, fetchedAt, runId, loadId }: ResponseOfTable,
  scope: FoldScope,
): Promise<AppliedResponse[]> {
  const others = (await readLoadedResponses(tx, scope, position)).filter(
    (response) => response.position !== position,
  );
  const own = { responseId: 0, position, fetchedAt: fetchedAt.toISOString(), load: { runId, loadId } };
  return [...others, own].sort((a, b) => (a.position < b.position ? -1 : 1));
}
