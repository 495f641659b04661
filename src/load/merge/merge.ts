import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ClientBase, PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type DayRange, eachDay } from '../../core/days.ts';
import type { Position } from '../../core/position.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import type { Kind } from '../../declaration/fields.ts';
import { countValues, type TableRows } from '../../declaration/rows.ts';
import type { Row, Scalar, TableDefinition } from '../../declaration/table.ts';
import { comparedDay, listedInFull, tables } from '../../operations/registry.ts';
import type { Database } from '../../postgres/database.ts';
import { afterCommit } from '../../postgres/transaction.ts';
import { type DayWithdrawal, type DecidedDays, NO_DAY } from '../../state/withdrawals.ts';
import { encodeRows } from './copy-text.ts';
import { fillFromStored, type PreservedColumns } from './fill-from-stored.ts';
import { type ApplySql, mergeSql } from './merge-sql.ts';

/**
 * The parts of a table that a load locks: the days of its rows and the days it lists in full. Where the key has columns
 * that say what was requested, it locks the entries instead: responses to different requests have no row in common, and
 * responses to the same requests wait for each other.
 */
export function lockedParts(
  { key, fields }: TableDefinition,
  rows: readonly Row[],
  days: readonly string[],
): Iterable<string> {
  const requested = fields.filter(
    ({ column, from, kind }) =>
      from === 'request' && kind === 'text' && column !== 'exchange' && key.includes(column),
  );
  if (requested.length === 0) return days;
  const nameEntry = (row: Row) => requested.map(({ column }) => row[column]).join('|');
  return new Set(Array.from(rows, (row) => nameEntry(row).toUpperCase()));
}

/** The part of a table that a response lists in full: stored rows of that part that it does not list are withdrawn. */
export interface FullSet {
  readonly table: TableDefinition;
  readonly exchange: string;
  /** First and last day; null where the response lists all rows of the exchange, whatever their day. */
  readonly days: DayRange | null;
  /**
   * True if it may list nothing for a trading day (for the exchange, where `days` is null). If not, then nothing is
   * withdrawn.
   */
  readonly mayBeEmpty: boolean;
}

/** What became of one table's records; those that were fetched or rejected are not counted here. */
interface Merged extends RecordCounts {
  /** Rows written, whichever response their values are from. */
  readonly written: number;
  /** Days with rows that were no longer listed, and what was done about them. */
  readonly withdrawals: readonly DayWithdrawal[];
}

/** The same, and of which days it was decided what becomes of rows that are not listed; null if there are none. */
export interface StoredRows extends Omit<Merged, 'withdrawals'> {
  readonly decided: DecidedDays | null;
}

/** The part of a response that is about one table. */
export interface TableResponse {
  readonly table: TableDefinition;
  readonly rows: readonly Row[];
  readonly fullSet: FullSet | undefined;
  /** Stored values to keep; without it, none. */
  readonly preserved?: PreservedColumns | undefined;
}

/** The same with its days, from `listDays`. */
export interface DatedResponse extends TableResponse {
  readonly days: readonly string[];
}

/** The load that rows carry. */
export interface WritingLoad {
  readonly runId: number;
  readonly loadId: number;
}

/** The load that a response is stored by, and what limits its withdrawals. */
export interface LoadOfResponse extends WritingLoad {
  readonly position: Position;
  /** When the response was fetched. */
  readonly fetchedAt: Date;
  /** Largest share of the rows present that may be withdrawn, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
}

/** What a fold knows of the days that it is about. */
interface FoldedDays {
  /** Whether a day is compared. */
  readonly isFolded: (day: string) => boolean;
  /** Days for which a person has accepted that the response lacks rows. */
  readonly accepted: readonly string[];
  /** By day, the most rows that it had so far. */
  readonly mostRows: ReadonlyMap<string, number>;
}

/** Of a response that is not folded: all days are compared, and the most rows of each are stored. */
const NOT_FOLDED: FoldedDays = { isFolded: () => true, accepted: [], mostRows: new Map() };

/** This many missing rows may always be withdrawn, whatever their share. */
const ALWAYS_WITHDRAWN = 5;

const ENSURE_PARTITION = 'select etl.ensure_year_partition($1, $2)';

const existingPartitions = new WeakMap<Database, Set<string>>();

/** Creates the yearly partitions that rows of these days need, in transactions of their own. */
export async function ensurePartitions(
  database: Database,
  table: TableDefinition,
  days: Iterable<string>,
): Promise<void> {
  if (!table.partitioned) return;
  const existing = existingPartitions.get(database) ?? new Set();
  existingPartitions.set(database, existing);
  const years = new Set(Array.from(days, (day) => day.slice(0, 4)));
  for (const year of years) {
    const name = `${table.name}_${year}`;
    if (existing.has(name)) continue;
    await database.pool.query(ENSURE_PARTITION, [table.name, Number(year)]);
    existing.add(name);
  }
}

/** Creates the partitions of this year and the next before any load needs them. */
export async function ensureNextPartitions(client: Pick<ClientBase, 'query'>): Promise<void> {
  const year = new Date().getUTCFullYear();
  for (const { name } of tables.filter(({ partitioned }) => partitioned)) {
    for (const each of [year, year + 1]) await client.query(ENSURE_PARTITION, [name, each]);
  }
}

const stages = new WeakMap<ClientBase, Set<TableDefinition>>();

/**
 * Creates the connection's staging table for a table unless it exists; every commit empties it. Call it inside a
 * transaction and before any savepoint, so that no rollback to a savepoint removes it. A connection whose transaction
 * fails is discarded.
 */
export async function ensureStage(client: ClientBase, table: TableDefinition): Promise<void> {
  const existing = stages.get(client) ?? new Set();
  stages.set(client, existing);
  if (!existing.has(table)) await client.query(mergeSql(table).createStage);
  existing.add(table);
}

/** Copies rows into the staging table, which must be empty. */
export async function stageRows(
  client: PoolClient,
  table: TableDefinition,
  rows: readonly Row[],
): Promise<void> {
  if (rows.length === 0) return;
  await copyRows(client, mergeSql(table).copy, encodeRows(table, rows, { positions: true }));
}

function copyRows(client: PoolClient, statement: string, pieces: Iterable<Buffer>): Promise<void> {
  return pipeline(Readable.from(pieces), client.query(copyFrom(statement)));
}

/**
 * Stores the part of a response that is about a table, if no response about its rows was fetched later. Call it inside a
 * transaction, after `ensureStage` and with the locks of the days held.
 */
export async function applyResponse(
  client: PoolClient,
  load: LoadOfResponse & { readonly exchange: string },
  response: DatedResponse,
): Promise<StoredRows> {
  const { table, fullSet, days } = response;
  const copied = listedInFull(table) === 'days' ? await copyNewDays(client, load, response) : null;
  if (copied === null) await stageRows(client, table, response.rows);
  const { withdrawals, ...counts } =
    copied ?? (await applyStaged(client, load, response, mergeSql(table, days)));
  if (fullSet === undefined) return { ...counts, decided: null };
  const fullDays = fullSet.days === null ? null : listFullDays(fullSet);
  return { ...counts, decided: { table, days: fullDays, isFolded: false, withdrawals } };
}

/**
 * Copies rows straight into the table if none of their days has ever had a row and no two of them have the same key:
 * then there is nothing to compare them with, and nothing to withdraw.
 *
 * @returns null if the rows have to be merged; then nothing was written.
 */
async function copyNewDays(
  client: PoolClient,
  { exchange, ...load }: LoadOfResponse & { readonly exchange: string },
  { table, rows, days }: DatedResponse,
): Promise<Merged | null> {
  const sql = mergeSql(table, days);
  if (sql.areNew === null || rows.length === 0 || hasDuplicates(table, rows)) return null;
  const result = await client.query<{ now: string }>(sql.areNew, [exchange, days]);
  const now = result.rows[0]?.now;
  if (now === undefined) return null;
  await copyAsNew(client, sql.copyNew, { table, rows }, { ...load, now });
  return { ...NOTHING, inserted: rows.length, written: rows.length };
}

/** Copies rows as their first revisions, with the load audit. */
export async function copyAsNew(
  client: PoolClient,
  statement: string,
  { table, rows }: TableRows,
  { now, runId, loadId }: WritingLoad & { readonly now: string },
): Promise<void> {
  const audit = `\t${now}\t${now}\t1\t${runId}\t${loadId}`;
  await copyRows(client, statement, encodeRows(table, rows, { audit }));
}

/** Kinds of key columns whose values are equal in Postgres only if they are equal here, numbers by `shortDecimal`. */
const COMPARED_KINDS: ReadonlySet<Kind> = new Set(['text', 'int2', 'int4', 'boolean', 'date', 'numeric']);

/** What is known of lists of rows: it is asked before the load and in it, and their keys take much memory. */
const knownDuplicates = new WeakMap<readonly Row[], boolean>();

/** True if two rows have the same key, or may have it. */
export function hasDuplicates(table: TableDefinition, rows: readonly Row[]): boolean {
  const known = knownDuplicates.get(rows) ?? findDuplicates(table, rows);
  knownDuplicates.set(rows, known);
  return known;
}

function findDuplicates({ key, fields }: TableDefinition, rows: readonly Row[]): boolean {
  const columns = fields.filter(({ column }) => key.includes(column));
  if (!columns.every(({ kind }) => COMPARED_KINDS.has(kind))) return true;
  if (columns.some(({ column, kind }) => kind !== 'numeric' && haveDistinctValues(rows, column)))
    return false;
  const keys = new Set<string>();
  for (const row of rows) {
    let text = '';
    for (const { column, kind } of columns) {
      const value = row[column] ?? null;
      const compared = kind === 'numeric' && value !== null ? shortDecimal(String(value)) : value;
      if (kind === 'numeric' && value !== null && compared === null) return true;
      // No value contains NUL.
      text += `${compared}\0`;
    }
    keys.add(text);
  }
  return keys.size < rows.length;
}

/** True if no two rows have the same value in a column: nearly always the instrument's, in rows of one day. */
function haveDistinctValues(rows: readonly Row[], column: string): boolean {
  const values = new Set<Scalar>();
  for (const row of rows) {
    const value = row[column] ?? null;
    if (values.has(value)) return false;
    values.add(value);
  }
  return true;
}

/** The shortest text of a plain decimal: 7.50 is 7.5. Null for other texts, because 1e1 and 10 are the same number. */
function shortDecimal(text: string): string | null {
  if (!/^(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return null;
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** The days by which the rows are compared with stored ones; NO_DAY where these are all rows of the exchange. */
function daysOfRows(table: TableDefinition, rows: readonly Row[]): Set<string> {
  const day = comparedDay(table);
  if (day === null) return new Set(rows.length === 0 ? [] : [NO_DAY]);
  return new Set(countValues(rows, day).keys() as Iterable<string>);
}

/** The days of the rows of a response and those that it lists in full, sorted; NO_DAY stands for a whole exchange. */
export const listDays = ({ table, rows, fullSet }: TableResponse): string[] =>
  [...new Set([...daysOfRows(table, rows), ...listFullDays(fullSet)])].sort();

/** Of a response that changed nothing. */
const NOTHING: Merged = { ...NO_COUNTS, written: 0, withdrawals: [] };

/**
 * Merges the staged rows with one statement, which writes only rows that differ, and withdraws rows that are no longer
 * listed with a second one. Call it inside a transaction, with the locks of the days held.
 *
 * @param sql the statements for the tables to change: those of `market`, or the temporary ones of a fold.
 */
export async function applyStaged(
  client: PoolClient,
  load: LoadOfResponse,
  { table, rows, fullSet, preserved }: TableResponse,
  sql: ApplySql,
  folded = NOT_FOLDED,
): Promise<Merged> {
  let merged = NOTHING;
  if (rows.length > 0) {
    if (preserved !== undefined) await fillFromStored(client, table, rows, sql.target, preserved);
    const areUnique = sql.mergeUnique !== undefined && !hasDuplicates(table, rows);
    const result = await client.query<Partial<Merged>>({
      ...(areUnique ? sql.mergeUnique : sql.merge),
      values: [load.runId, load.loadId, load.fetchedAt.toISOString()],
    });
    merged = { ...NOTHING, ...result.rows[0] };
  }
  if (fullSet === undefined) return merged;
  const checkedDays = listFullDays(fullSet).filter(folded.isFolded);
  // After the merge every listed row is stored, so days with no more rows than that lack none.
  const isChecked = [...daysOfRows(table, rows)].every((day) => checkedDays.includes(day));
  const listedRows = rows.length > 0 && isChecked ? rows.length - merged.duplicate : null;
  const withdrawals = await withdrawUnlisted(client, load, fullSet, sql, {
    ...folded,
    checkedDays,
    listedRows,
  });
  const withdrawn = withdrawals.filter(({ state }) => state === 'withdrawn');
  return {
    ...merged,
    withdrawn: withdrawn.reduce((sum, { unlistedRows }) => sum + unlistedRows, 0),
    withdrawals,
  };
}

/** Days of which a response lists all rows; NO_DAY where it lists all rows of the exchange. */
export function listFullDays(fullSet: FullSet | undefined): readonly string[] {
  if (fullSet === undefined) return [];
  return fullSet.days === null ? [NO_DAY] : eachDay(fullSet.days.from, fullSet.days.to);
}

/** A day with rows that were not listed, as `ApplySql.withdraw` returns it. */
interface DayCheck extends Pick<DayWithdrawal, 'unlistedRows' | 'remainingRows' | 'maxRows' | 'rows'> {
  readonly day: string;
  /** Rows that were there before the response. */
  readonly rowsBefore: number;
  /** A trading day that always has rows would have none left. */
  readonly isEmptied: boolean;
  readonly isAllowed: boolean;
}

/** Withdraws the rows of some days that a response does not list, where they are not too many. */
async function withdrawUnlisted(
  client: PoolClient,
  { loadId, position, maxWithdrawShare }: LoadOfResponse,
  { table, exchange, days, mayBeEmpty }: FullSet,
  sql: ApplySql,
  {
    accepted,
    mostRows,
    checkedDays,
    listedRows,
  }: FoldedDays & { readonly checkedDays: readonly string[]; readonly listedRows: number | null },
): Promise<DayWithdrawal[]> {
  if (checkedDays.length === 0) return [];
  const most = JSON.stringify(Object.fromEntries(mostRows));
  const checks = await client.query<DayCheck>({
    ...sql.withdraw,
    values: [
      loadId,
      exchange,
      maxWithdrawShare,
      ALWAYS_WITHDRAWN,
      mayBeEmpty,
      checkedDays,
      accepted,
      listedRows,
      most,
    ],
  });
  return checks.rows.map(({ rowsBefore, isEmptied, isAllowed, ...check }) => ({
    ...check,
    table: table.name,
    day: days === null ? null : check.day,
    position,
    state: isAllowed ? 'withdrawn' : 'withheld',
    withheld: isAllowed ? null : reasonToWithhold(table, { ...check, rowsBefore, isEmptied }, days),
  }));
}

function reasonToWithhold(
  { name }: TableDefinition,
  { day, unlistedRows, rowsBefore, maxRows, isEmptied }: Omit<DayCheck, 'isAllowed'>,
  days: DayRange | null,
): string {
  const once = rowsBefore < maxRows ? ` (there once were ${maxRows})` : '';
  const ofDay = days !== null && days.from !== days.to ? ` of ${day}` : '';
  const missing = `${unlistedRows} of ${rowsBefore} rows of market.${name}${ofDay} were not listed any more${once}`;
  if (!isEmptied) return `${missing}; more than may be withdrawn (EOD_MAX_WITHDRAW_SHARE), so none was`;
  return `${missing}, ${days === null ? 'and no other row was' : 'and no other row of their day was'}; the response is taken as incomplete, so none was withdrawn`;
}

/** For fewer new rows than this, the query costs more than it saves. */
const MANY_ROWS = 1_000;

/**
 * Reads the days just written, so that Postgres sets the hint bits of the new rows: the first reader of a row marks it
 * as committed on its page. Right after the load that costs nothing. After a checkpoint, where pages carry checksums
 * (the default since Postgres 18), every page marked like this goes into the WAL in full, and an identical reload would
 * write two thirds of what the load wrote (bench/README.md). Call it after the commit; it does not throw.
 */
export async function setHintBits(
  database: Database,
  table: TableDefinition,
  {
    exchange,
    days,
    written,
  }: { readonly exchange: string; readonly days: Iterable<string>; readonly written: number },
): Promise<void> {
  if (comparedDay(table) === null || written < MANY_ROWS) return;
  await afterCommit(database, 'read the days that were written', () =>
    database.pool.query(mergeSql(table).readDays, [exchange, [...days]]),
  );
}
