import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { countValues, type TableRows } from '../../declaration/rows.ts';
import type { Row, TableDefinition } from '../../declaration/table.ts';
import { listedInFull } from '../../operations/registry.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import type { Transaction } from '../../postgres/transaction.ts';
import type { ResponseSaid } from '../../state/responses/response-facts.ts';
import { type KeptResponse, readKeptResponse } from '../../state/responses/responses.ts';
import type { ResponseToFold } from '../../state/responses/to-fold.ts';
import { type DayWithdrawal, type DecidedDays, NO_DAY, readAcceptedDays } from '../../state/withdrawals.ts';
import {
  applyStaged,
  copyAsNew,
  type FullSet,
  hasDuplicates,
  listDays,
  listFullDays,
  stageRows,
  type TableResponse,
  type WritingLoad,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import { foldSql } from './fold-sql.ts';

// Folding: the responses about some days, instruments or all of a table are applied in their order to an empty copy of
// it, with the statements that apply a response to `market`. Then the differences between the copy and what is stored
// are settled, or counted.

/** A response as the code of today reads it, its days judged as of the moment of its call. */
export interface ResponseReading extends ResponseSaid {
  readonly batches: readonly TableRows[];
  readonly fullSets: readonly FullSet[];
  readonly preserved?: TableResponse['preserved'];
}

/** How kept responses are read and judged. */
export interface FoldSettings {
  readonly readAgain: (response: KeptResponse) => Promise<ResponseReading>;
  /** Largest share of the rows present that may be withdrawn, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
}

/**
 * Reads a kept response. @throws PipelineError `unreadable` if the code of today cannot: without it, it is not known what
 * the others left.
 */
export async function readKept(
  db: NodePgDatabase,
  responseId: number,
  { readAgain }: Pick<FoldSettings, 'readAgain'>,
): Promise<ResponseReading> {
  const response = await readKeptResponse(db, responseId);
  if (response === null) throw new Error(`response ${responseId} is not kept any more`);
  return readAgain(response).catch((error) => {
    // A lost connection is no fault of the response: the window is tried again.
    if (databaseError(error).kind.startsWith('database')) throw error;
    const { operation, exchange, position } = response;
    throw new PipelineError(
      `a kept response about the same rows, ${operation} ${exchange} of ${position}, cannot be read any more: ${messageOf(error)}`,
      { kind: 'unreadable', cause: error },
    );
  });
}

/** The part of a response that is about one table. */
export const partAbout = (
  { batches, fullSets, preserved }: Omit<ResponseReading, keyof ResponseSaid>,
  table: TableDefinition,
): TableResponse => ({
  table,
  rows: batches.find((batch) => batch.table === table)?.rows ?? [],
  fullSet: fullSets.find((set) => set.table === table),
  preserved,
});

/** Some rows of a table: those of days, of instruments, or all of an exchange. */
export interface PartOfTable {
  readonly table: TableDefinition;
  readonly exchange: string;
  /** Null where the table has no days that responses list in full. */
  readonly days: readonly string[] | null;
  /** In upper case; null: all. */
  readonly instruments: readonly string[] | null;
}

/** A response that is applied to a copy, and the load that its rows there carry. */
export interface FoldedResponse extends ResponseToFold {
  readonly load: WritingLoad;
}

/** A temporary copy of a part of a table, to which responses are applied. */
export interface Copy extends PartOfTable {
  /** Applies a response that comes after all that were applied so far. */
  apply(response: FoldedResponse, ofTable: TableResponse): Promise<void>;
  /** What the responses did about rows that they did not list; null where responses list nothing in full. */
  decide(): DecidedDays | null;
}

/** The days by which a fold compares: NO_DAY stands for a table without days. */
const daysOfFold = ({ days }: PartOfTable): readonly string[] => days ?? [NO_DAY];

const buildFoldSql = ({ table, days }: PartOfTable) => foldSql(table, days ?? []);

/** Creates an empty copy of a part. Call it after `ensureStage`. */
export async function createCopy(
  tx: Transaction,
  part: PartOfTable,
  maxWithdrawShare: number,
): Promise<Copy> {
  const { client } = tx;
  const { table, exchange, days } = part;
  const sql = buildFoldSql(part);
  const within = days === null ? null : new Set(days);
  await client.query(sql.createCopy);
  const acceptedDays = await readAcceptedDays(tx, { table: table.name, exchange });
  const { rows: begun } = await client.query<{ now: string }>('select statement_timestamp()::text as now');
  const now = begun[0]?.now ?? '';
  const withdrawals: DayWithdrawal[] = [];
  /** By day, the withdrawal that was withheld last, and that no response has decided since. */
  const withheld = new Map<string, DayWithdrawal>();
  /** By day, the most rows that it had since a withdrawal was accepted. */
  const mostRows = new Map<string, number>();
  const daysSoFar = new Set<string>();
  return {
    ...part,
    async apply({ position, load, fetchedAt }, { rows: all, fullSet, preserved }) {
      const rows = within === null ? all : rowsOfDays(table, all, within);
      const response = { table, rows, fullSet, preserved };
      const about = listDays(response);
      const isFirst = within !== null && about.every((day) => !daysSoFar.has(day));
      for (const day of about) daysSoFar.add(day);
      // Of these days there is nothing yet to compare it with.
      if (isFirst && !hasDuplicates(table, rows)) {
        if (rows.length > 0) await copyAsNew(client, sql.copyNew, response, { ...load, now });
        return;
      }
      await client.query(`truncate ${mergeSql(table).stage}`);
      await stageRows(client, table, rows);
      const accepted = acceptedDays.flatMap((acceptedDay) =>
        acceptedDay.position === position ? [acceptedDay.day] : [],
      );
      const applying = { ...load, position, fetchedAt: new Date(fetchedAt), maxWithdrawShare };
      const isFolded = (day: string) => within?.has(day) ?? true;
      const folded = { isFolded, accepted, mostRows };
      const applied = await applyStaged(client, applying, response, sql, folded);
      for (const day of listFullDays(fullSet)) withheld.delete(day);
      for (const withdrawal of applied.withdrawals) {
        withdrawals.push(withdrawal);
        const day = withdrawal.day ?? NO_DAY;
        if (withdrawal.withheld !== null) withheld.set(day, withdrawal);
        else mostRows.set(day, accepted.includes(day) ? withdrawal.remainingRows : withdrawal.maxRows);
      }
    },
    decide() {
      if (listedInFull(table) === 'none') return null;
      const decided = withdrawals.map((withdrawal) =>
        withdrawal.withheld === null || withheld.get(withdrawal.day ?? NO_DAY) === withdrawal
          ? withdrawal
          : { ...withdrawal, state: 'outdated' as const },
      );
      return { table, days, isFolded: true, withdrawals: decided };
    },
  };
}

/** What a fold changed. */
export interface Settled extends RecordCounts {
  readonly table: TableDefinition;
  readonly decided: DecidedDays | null;
  /** How many rows or revisions were written. */
  readonly changed: number;
  /** Where nothing was stored before: the loads of the responses whose rows are stored now. */
  readonly loads: readonly number[];
}

/** Makes what is stored equal to a copy, as revisions of one load. */
export async function settle(
  { client }: Transaction,
  copy: Copy,
  { runId, loadId }: WritingLoad,
): Promise<Settled> {
  const sql = buildFoldSql(copy);
  // Without statistics the planner takes the copy to be small, and compares each row with all others.
  await client.query(sql.analyzeCopy);
  const { rows } = await client.query<Partial<Settled>>(sql.settle, [runId, loadId]);
  const written = { ...NO_COUNTS, changed: 0, loads: [], ...rows[0], table: copy.table };
  const decided = copy.decide();
  if (decided === null) return { ...written, decided };
  const unlisted = await client.query(sql.withdrawUnlisted, [copy.exchange, daysOfFold(copy), loadId]);
  const withdrawn = unlisted.rowCount ?? 0;
  return { ...written, decided, withdrawn, changed: written.changed + withdrawn };
}

/** True if nothing of a part is stored or ever was. */
export async function isEmpty(tx: Transaction, part: PartOfTable): Promise<boolean> {
  const { table, exchange, days, instruments } = part;
  const { areNew } = mergeSql(table, days ?? []);
  const empty =
    days !== null && areNew !== null
      ? await tx.client.query(areNew, [exchange, days])
      : await tx.client.query(buildFoldSql(part).isEmpty, [exchange, daysOfFold(part), instruments]);
  return (empty.rowCount ?? 0) > 0;
}

/**
 * Stores a part of which nothing is stored: rows and history become those that the responses made in their order, each
 * with a load of its own.
 */
export async function fillPart(tx: Transaction, copy: Copy): Promise<Settled> {
  const { rows } = await tx.client.query<Partial<Settled>>(buildFoldSql(copy).storeCopy);
  const { table } = copy;
  return { ...NO_COUNTS, changed: 0, loads: [], ...rows[0], table, decided: copy.decide() };
}

/** A stored row that is not what the kept responses say. */
export interface RowDifference {
  readonly problem: 'differs' | 'missing' | 'unexpected';
  readonly key: Readonly<Record<string, string | null>>;
  /** The load that wrote it; of a missing row, that of the response which has it. */
  readonly loadId: number;
}

/** Compares what is stored with a copy. Writes nothing. */
export async function findDifferences(tx: Transaction, copy: Copy): Promise<RowDifference[]> {
  const sql = buildFoldSql(copy);
  await tx.client.query(sql.analyzeCopy);
  const values = [copy.exchange, daysOfFold(copy), copy.instruments];
  return (await tx.client.query<RowDifference>(sql.selectDifferences, values)).rows;
}

/** The rows of some days. */
function rowsOfDays(
  { dateColumn }: TableDefinition,
  rows: readonly Row[],
  days: ReadonlySet<string>,
): readonly Row[] {
  if (dateColumn === null) return rows;
  const isAll = [...countValues(rows, dateColumn).keys()].every((day) => days.has(String(day)));
  return isAll ? rows : rows.filter((row) => days.has(row[dateColumn] as string));
}
