import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { countValues } from '../../declaration/rows.ts';
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
  daysOfRows,
  type FullSet,
  hasDuplicates,
  type LoadOfResponse,
  listFullDays,
  NOTHING,
  type StoredRows,
  stageRows,
  type TableResponse,
  type TableRows,
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

export type ReadAgain = (response: KeptResponse) => Promise<ResponseReading>;

/** Reads a kept response. */
export type ReadKept = (responseId: number) => Promise<ResponseReading>;

/**
 * A function that reads kept responses; @throws PipelineError `unreadable` if the code of today cannot read one: without
 * it, it is not known what the others left.
 */
export function keptReader(db: NodePgDatabase, readAgain: ReadAgain): ReadKept {
  return async (responseId) => {
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
  };
}

/** The part of a response that is about one table. */
export const partAbout = (
  { batches, fullSets, preserved }: Omit<ResponseReading, keyof ResponseSaid>,
  table: TableDefinition,
): TableResponse => ({
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

/** The load that stores what a fold changes. */
type SettlingLoad = Pick<LoadOfResponse, 'runId' | 'loadId'>;

/** A response that is applied to a copy, and the load that its rows there carry. */
export interface AppliedResponse extends ResponseToFold {
  readonly load: SettlingLoad;
}

/** A temporary copy of a part of a table, to which responses are applied. */
export interface Copy extends PartOfTable {
  /** Applies a response that comes after all that were applied so far. */
  apply(response: AppliedResponse, ofTable: TableResponse): Promise<void>;
  /** What the responses so far have decided. */
  fold(): Folded;
}

/** What the responses that were applied to a copy have decided. */
interface Folded {
  readonly decided: DecidedDays | null;
  /** What the responses did about rows that they did not list. */
  readonly withdrawals: readonly DayWithdrawal[];
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
  const accepted = await readAcceptedDays(tx, { table: table.name, exchange });
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
      const about = [...daysOfRows(table, rows), ...listFullDays(fullSet)];
      const isFirst = within !== null && about.every((day) => !daysSoFar.has(day));
      for (const day of about) daysSoFar.add(day);
      // Of these days there is nothing yet to compare it with.
      if (isFirst && !hasDuplicates(table, rows)) {
        if (rows.length > 0) await copyAsNew(client, sql.copyNew, { table, rows, now, ...load });
        return;
      }
      await client.query(`truncate ${mergeSql(table).stage}`);
      await stageRows(client, table, rows);
      const acceptedOfIt = accepted.flatMap((acceptedDay) =>
        acceptedDay.position === position ? [acceptedDay.day] : [],
      );
      const applying = { ...load, position, fetchedAt: new Date(fetchedAt), maxWithdrawShare };
      const folded = {
        isFolded: (day: string) => within?.has(day) ?? true,
        accepted: acceptedOfIt,
        mostRows,
      };
      const applied = await applyStaged(client, {
        table,
        response: { rows, fullSet, preserved },
        load: applying,
        sql,
        folded,
      });
      for (const day of applied.checkedDays) withheld.delete(day);
      for (const withdrawal of applied.withdrawals) {
        withdrawals.push(withdrawal);
        const day = withdrawal.day ?? NO_DAY;
        if (withdrawal.withheld !== null) withheld.set(day, withdrawal);
        else mostRows.set(day, acceptedOfIt.includes(day) ? withdrawal.remainingRows : withdrawal.maxRows);
      }
    },
    fold: () => ({
      withdrawals: withdrawals.map((withdrawal) =>
        withdrawal.withheld === null || withheld.get(withdrawal.day ?? NO_DAY) === withdrawal
          ? withdrawal
          : { ...withdrawal, state: 'outdated' },
      ),
      decided: listedInFull(table) === 'none' ? null : { table: table.name, days, isFolded: true },
    }),
  };
}

/** What a fold changed. */
export interface Settled
  extends Folded,
    Pick<RecordCounts, 'inserted' | 'updated' | 'unchanged' | 'withdrawn'> {
  /** How many rows or revisions were written. */
  readonly changed: number;
  /** Where nothing was stored before: the loads of the responses whose rows are stored now. */
  readonly loads: readonly number[];
}

/** Makes what is stored equal to a copy, as revisions of one load. */
async function settle({ client }: Transaction, copy: Copy, load: SettlingLoad): Promise<Settled> {
  const sql = buildFoldSql(copy);
  const folded = copy.fold();
  const { rows } = await client.query<Record<string, string>>(sql.settle, [load.runId, load.loadId]);
  const count = (name: string) => Number(rows[0]?.[name] ?? 0);
  let withdrawn = 0;
  if (folded.decided !== null) {
    const values = [copy.exchange, daysOfFold(copy), load.loadId];
    withdrawn = (await client.query(sql.withdrawUnlisted, values)).rowCount ?? 0;
  }
  const counts = { inserted: count('inserted'), updated: count('updated'), unchanged: count('unchanged') };
  return { ...folded, ...counts, withdrawn, changed: count('changed') + withdrawn, loads: [] };
}

/** So few rows are compared with one another in no time. */
const FEW_ROWS = 100;

/** A response that is loaded after others of later positions. */
interface LateResponse extends TableResponse, LoadOfResponse {
  readonly exchange: string;
  readonly table: TableDefinition;
}

/**
 * Folds a response that is loaded late with the others about its rows. Where responses list nothing in full, only the
 * rows of its records follow from these responses. Its records are staged already.
 *
 * @param applyAll applies them all to a copy.
 * @returns what became of its records: how many rows changed, whichever response their values are from.
 */
export async function foldLate(
  tx: Transaction,
  late: LateResponse,
  days: readonly string[] | null,
  applyAll: (copy: Copy) => Promise<void>,
): Promise<StoredRows> {
  const { client } = tx;
  const { table, exchange, rows, maxWithdrawShare } = late;
  const part = { table, exchange, days, instruments: null };
  const sql = buildFoldSql(part);
  const isOfRecords = listedInFull(table) === 'none';
  if (isOfRecords) await client.query(sql.noteKeys);
  const copy = await createCopy(tx, part, maxWithdrawShare);
  await applyAll(copy);
  if (isOfRecords) await client.query(sql.keepNotedKeys);
  // Without statistics the planner takes the copy to be small, and compares each row with all others.
  if (rows.length > FEW_ROWS) await client.query(sql.analyzeCopy);
  const { decided, withdrawals, ...settled } = await settle(tx, copy, late);
  const inserted = Math.min(settled.inserted, rows.length);
  const updated = Math.min(settled.updated, rows.length - inserted);
  return {
    ...NOTHING,
    inserted,
    updated,
    unchanged: rows.length - inserted - updated,
    withdrawn: settled.withdrawn,
    written: settled.changed - settled.withdrawn,
    withdrawals,
    decided,
  };
}

/** Settles the differences of a part of a replay, or of the day of an accepted withdrawal. */
export async function settlePart(tx: Transaction, copy: Copy, load: SettlingLoad): Promise<Settled> {
  await tx.client.query(buildFoldSql(copy).analyzeCopy);
  return settle(tx, copy, load);
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
  const { rows } = await tx.client.query<{ inserted: number; changed: number; loads: number[] }>(
    buildFoldSql(copy).storeCopy,
  );
  const [stored = { inserted: 0, changed: 0, loads: [] }] = rows;
  return { ...copy.fold(), ...NO_COUNTS, ...stored };
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
