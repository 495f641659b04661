import type { PoolClient } from 'pg';
import { type DayRange, spanDays } from '../../core/days.ts';
import { NO_COUNTS } from '../../core/record-counts.ts';
import { listedInFull, namesFilling } from '../../operations/registry.ts';
import type { Transaction } from '../../postgres/transaction.ts';
import { type FoldScope, readLoadedResponses } from '../../state/responses/to-fold.ts';
import {
  applyStaged,
  type DatedResponse,
  type LoadOfResponse,
  type StoredRows,
  stageRows,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import { createCopy, type FoldedResponse, type FoldSettings, partAbout, readKept, settle } from './fold.ts';
import { foldSql, hasRequestedSymbol } from './fold-sql.ts';

/** The load of a response that may be late. */
interface OrderedLoad extends LoadOfResponse, FoldSettings, DayRange {
  readonly exchange: string;
  /** The instruments that were requested; none where that is the whole exchange. */
  readonly instruments: readonly string[];
}

/** The days that a response is about, of a table of which responses list days in full; else null. */
const daysAbout = ({ table, days }: DatedResponse) =>
  listedInFull(table) === 'days' && table.dateColumn !== null ? days : null;

/** Which responses may be about the same rows as one. */
export function scopeOfRows(load: OrderedLoad, response: DatedResponse): FoldScope {
  const { table } = response;
  const isOfRecords = listedInFull(table) === 'none';
  const day = table.fields.find(({ column }) => column === table.dateColumn);
  // Where the key has the requested instrument, responses about others have no row in common.
  const isOfInstruments = isOfRecords && hasRequestedSymbol(table) && load.instruments.length > 0;
  return {
    operations: namesFilling([table]),
    exchange: load.exchange,
    days: spanDays(daysAbout(response) ?? []),
    instruments: isOfInstruments ? load.instruments.map((instrument) => instrument.toUpperCase()) : null,
    // Where the day of a row comes from the request, only requests for the same days can list it.
    near: isOfRecords && day !== undefined && day.from !== 'response' ? load : null,
  };
}

/**
 * Stores a response that was fetched before others about the same rows: folds the kept responses of its days. Where
 * responses list nothing in full, only the rows of its records follow from these. Call it inside a transaction, after
 * `ensureStage` and with the locks held, so that it sees everything that was loaded before.
 *
 * @returns what became of its records: how many rows changed, whichever response their values are from.
 * @throws PipelineError `unreadable`; `database` if one of these responses is not kept.
 */
export async function foldLateResponse(
  tx: Transaction,
  load: OrderedLoad,
  late: DatedResponse,
  scope: FoldScope,
): Promise<StoredRows> {
  const { client } = tx;
  const { table, rows, days } = late;
  await stageRows(client, table, rows);
  const isOfRecords = listedInFull(table) === 'none';
  // There, a record that is new or certainly older leads to the same rows in any order.
  if (isOfRecords && !(await hasConflict(client, load, late)))
    return { ...(await applyStaged(client, load, late, mergeSql(table, days))), decided: null };
  const part = { table, exchange: load.exchange, days: daysAbout(late), instruments: null };
  const { noteKeys, keepNotedKeys } = foldSql(table, part.days ?? []);
  if (isOfRecords) await client.query(noteKeys);
  const copy = await createCopy(tx, part, load.maxWithdrawShare);
  for (const response of await listResponses(tx, load, scope)) {
    const isLate = response.position === load.position;
    const ofTable = isLate ? late : partAbout(await readKept(tx, response.responseId, load), table);
    await copy.apply(response, ofTable);
  }
  if (isOfRecords) await client.query(keepNotedKeys);
  const { decided, withdrawn, changed, ...settled } = await settle(tx, copy, load);
  const inserted = Math.min(settled.inserted, rows.length);
  const updated = Math.min(settled.updated, rows.length - inserted);
  const unchanged = rows.length - inserted - updated;
  return { ...NO_COUNTS, inserted, updated, unchanged, withdrawn, written: changed - withdrawn, decided };
}

async function hasConflict(
  client: PoolClient,
  { fetchedAt }: OrderedLoad,
  { table, days }: DatedResponse,
): Promise<boolean> {
  const conflicts = await client.query(foldSql(table, days).hasConflict, [fetchedAt.toISOString()]);
  return (conflicts.rowCount ?? 0) > 0;
}

/** All responses that may be about the rows of a late one, and this one among them, in their order. */
async function listResponses(
  tx: Transaction,
  { position, fetchedAt, runId, loadId }: OrderedLoad,
  scope: FoldScope,
): Promise<FoldedResponse[]> {
  const others = (await readLoadedResponses(tx, scope, position)).filter(
    (response) => response.position !== position,
  );
  const own = { responseId: 0, position, fetchedAt: fetchedAt.toISOString(), load: { runId, loadId } };
  return [...others, own].sort((a, b) => (a.position < b.position ? -1 : 1));
}
