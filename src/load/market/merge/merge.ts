import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ClientBase, PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type DayRange, eachDay } from '../../../core/days.ts';
import type { Position } from '../../../core/position.ts';
import type { RecordCounts } from '../../../core/record-counts.ts';
import type { Kind } from '../../../operations/fields.ts';
import { comparedDay, tables } from '../../../operations/registry.ts';
import { countValues } from '../../../operations/rows.ts';
import type { Row, TableDefinition } from '../../../operations/table.ts';
import type { Database } from '../../database/database.ts';
import { afterCommit } from '../../database/transaction.ts';
import { type DayWithdrawal, NO_DAY, type RowKey } from '../../state/withdrawals.ts';
import { encodeRows } from './copy-text.ts';
import { type ApplySql, mergeSql, quote } from './merge-sql.ts';

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
  const entryOf = (row: Row) => requested.map(({ column }) => row[column]).join('|');
  return new Set(Array.from(rows, (row) => entryOf(row).toUpperCase()));
}

/** Rows for a table. */
export interface TableRows {
  readonly table: TableDefinition;
  readonly rows: readonly Row[];
}

/** The part of a table that a response lists in full: stored rows of that part that it does not list are withdrawn. */
export interface FullSet {
  readonly table: TableDefinition;
  readonly exchange: string;
  /** First and last day; null where the response lists all rows of the exchange, whatever their day. */
  readonly days: DayRange | null;
  /**
   * True if it may list nothing for a session (for the exchange, where `days` is null). If not, then nothing is
   * withdrawn.
   */
  readonly mayBeEmpty: boolean;
}

/** Stored values that an imported file leaves as they are, because it knows less than the source that they are from. */
export interface PreservedColumns {
  /** Columns for which it has no value, or only a less precise one: they are written only where no value is stored. */
  readonly columns: readonly string[];
  /** By column, for numbers that it rounds: a stored number that differs by less than this is kept. */
  readonly rounded: Readonly<Record<string, number>>;
  /** Columns that it may leave blank although there is a value: then the stored value is kept. */
  readonly sometimesBlank?: readonly string[];
}

/** What became of one table's records. */
export interface Merged extends Omit<RecordCounts, 'fetched' | 'rejected'> {
  /** Rows written, whichever response their values are from. */
  readonly written: number;
  /** Days with rows that were no longer listed, and what was done about them. */
  readonly withdrawals: readonly DayWithdrawal[];
  /** Days whose stored rows were compared with the rows that the response lists (NO_DAY for a whole exchange). */
  readonly checkedDays: readonly string[];
}

/** The part of a response that is about one table. */
export interface TableResponse {
  readonly rows: readonly Row[];
  readonly fullSet: FullSet | undefined;
  /** Stored values to keep; without it, none. */
  readonly preserved?: PreservedColumns | undefined;
}

/** The load that a response is stored by, and what limits its withdrawals. */
export interface LoadOfResponse {
  readonly runId: number;
  readonly loadId: number;
  readonly position: Position;
  /** When the response was fetched. */
  readonly fetchedAt: Date;
  /** Largest share of the rows present that may be withdrawn, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
}

interface ApplyOptions extends LoadOfResponse {
  /** Only these days are compared; all days where it is null or not given. */
  readonly within?: ReadonlySet<string> | null;
  /** Days for which a person has accepted that the response lacks rows. */
  readonly accepted?: readonly string[];
  /** In a fold: by day, the most rows that it had so far. Else they are stored. */
  readonly mostRows?: ReadonlyMap<string, number>;
}

/** This many missing rows may always be withdrawn, whatever their share. */
const ALWAYS_WITHDRAWN = 5;

const ENSURE_PARTITION = 'select etl.ensure_year_partition($1, $2)';

const existingPartitions = new WeakMap<Database, Set<string>>();

/** Creates the yearly partitions that these rows need, in transactions of their own. */
export async function ensurePartitions(
  database: Database,
  table: TableDefinition,
  rows: readonly Row[],
): Promise<void> {
  const column = table.dateColumn;
  if (!table.partitioned || column === null) return;
  const existing = existingPartitions.get(database) ?? new Set();
  existingPartitions.set(database, existing);
  const years = new Set([...countValues(rows, column).keys()].map((day) => String(day).slice(0, 4)));
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
 * Copies rows straight into the table if none of their days has ever had a row and no two of them have the same key:
 * then there is nothing to compare them with, and nothing to withdraw. Call it with the locks of the days held, and
 * only for tables of which responses list days in full.
 *
 * @param days all days of the rows and those that the response lists in full.
 * @returns null if the rows have to be merged; then nothing was written.
 */
export async function copyNewDays(
  client: PoolClient,
  { table, rows, fullSet, exchange, runId, loadId }: TableResponse & NewRows,
  days: readonly string[],
): Promise<Merged | null> {
  const sql = mergeSql(table, days);
  if (sql.areNew === null || rows.length === 0 || hasDuplicates(table, rows)) return null;
  const found = await client.query<{ now: string }>(sql.areNew, [exchange, days]);
  const now = found.rows[0]?.now;
  if (now === undefined) return null;
  await copyAsNew(client, sql.copyNew, { table, rows, now, runId, loadId });
  return {
    ...NOTHING,
    inserted: rows.length,
    written: rows.length,
    checkedDays: daysOf(fullSet),
  };
}

/** Copies rows as the first revisions of theirs, with the load audit. */
export async function copyAsNew(
  client: PoolClient,
  statement: string,
  {
    table,
    rows,
    now,
    runId,
    loadId,
  }: TableRows & Pick<LoadOfResponse, 'runId' | 'loadId'> & { readonly now: string },
): Promise<void> {
  const audit = `\t${now}\t${now}\t1\t${runId}\t${loadId}`;
  await copyRows(client, statement, encodeRows(table, rows, { audit }));
}

/** Where the rows belong, and the load that copies them. */
interface NewRows extends Pick<LoadOfResponse, 'runId' | 'loadId'> {
  readonly table: TableDefinition;
  readonly exchange: string;
}

/** Kinds of key columns whose values are equal in Postgres only if they are equal here, numbers by `shortDecimal`. */
const COMPARED_KINDS: ReadonlySet<Kind> = new Set(['text', 'int2', 'int4', 'boolean', 'date', 'numeric']);

/** True if two rows have the same key, or that cannot be ruled out. */
export function hasDuplicates({ key, fields }: TableDefinition, rows: readonly Row[]): boolean {
  const columns = fields.filter(({ column }) => key.includes(column));
  if (!columns.every(({ kind }) => COMPARED_KINDS.has(kind))) return true;
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

/** The shortest text of a plain decimal: 7.50 is 7.5. Null for other texts, because 1e1 and 10 are the same number. */
function shortDecimal(text: string): string | null {
  if (!/^(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return null;
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** The days by which the rows are compared with stored ones; NO_DAY where that are all rows of the exchange. */
export function daysOfRows(table: TableDefinition, rows: readonly Row[]): Set<string> {
  const day = comparedDay(table);
  if (day === null) return new Set(rows.length === 0 ? [] : [NO_DAY]);
  return new Set(countValues(rows, day).keys() as Iterable<string>);
}

/** Of a response that changed nothing. */
export const NOTHING: Merged = {
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  duplicate: 0,
  withdrawn: 0,
  written: 0,
  withdrawals: [],
  checkedDays: [],
};

/**
 * Merges the staged rows with one statement, which writes only rows that differ, and withdraws rows that are no longer
 * listed with a second one. Call it inside a transaction, with the locks of the days held.
 *
 * @param sql the statements for the tables to change: those of `market`, or the temporary ones of a fold.
 */
export async function applyStaged(
  client: PoolClient,
  table: TableDefinition,
  { rows, fullSet, preserved }: TableResponse,
  options: ApplyOptions,
  sql: ApplySql & { readonly mergeUnique?: ApplySql['merge'] },
): Promise<Merged> {
  let merged = NOTHING;
  if (rows.length > 0) {
    if (preserved !== undefined) await preserveStored(client, table, rows, sql.target, preserved);
    const areUnique = sql.mergeUnique !== undefined && !hasDuplicates(table, rows);
    const result = await client.query<Record<string, string>>({
      ...(areUnique ? sql.mergeUnique : sql.merge),
      values: [options.runId, options.loadId, options.fetchedAt.toISOString()],
    });
    merged = { ...NOTHING, ...countsOf(result.rows[0]) };
  }
  const checkedDays = daysOf(fullSet).filter((day) => options.within?.has(day) ?? true);
  // After the merge every listed row is stored, so days with no more rows than that lack none.
  const isChecked = [...daysOfRows(table, rows)].every((day) => checkedDays.includes(day));
  const listed = rows.length > 0 && isChecked ? rows.length - merged.duplicate : null;
  const withdrawals =
    fullSet === undefined || checkedDays.length === 0
      ? []
      : await withdraw(client, table, { ...fullSet, checkedDays, listed }, options, sql);
  return { ...merged, withdrawn: withdrawnIn(withdrawals), withdrawals, checkedDays };
}

/** Days of which a response lists all rows; NO_DAY where it lists all rows of the exchange. */
export function daysOf(fullSet: FullSet | undefined): readonly string[] {
  if (fullSet === undefined) return [];
  return fullSet.days === null ? [NO_DAY] : eachDay(fullSet.days.from, fullSet.days.to);
}

/** Up to this many rows cost less as a parameter of the merge than in a staging table. */
const FEW_ROWS = 20;

/**
 * Merges a few rows without a staging table, if the response lists nothing in full.
 *
 * @returns null if there are too many rows or more is to be done than a merge; then nothing was written.
 */
export async function mergeFew(
  client: PoolClient,
  table: TableDefinition,
  { rows, fullSet, preserved }: TableResponse,
  { runId, loadId, fetchedAt }: LoadOfResponse,
): Promise<Merged | null> {
  if (rows.length === 0 || rows.length > FEW_ROWS || fullSet !== undefined || preserved !== undefined)
    return null;
  const result = await client.query<Record<string, string>>({
    ...mergeSql(table, daysOfRows(table, rows)).mergeFew,
    values: [runId, loadId, fetchedAt.toISOString(), JSON.stringify(Array.from(rows))],
  });
  return { ...NOTHING, ...countsOf(result.rows[0]) };
}

/** What statements that merge records count. */
const COUNTED = ['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'written'] as const;

/** The counts that a statement returned. */
const countsOf = (row: Readonly<Record<string, string>> | undefined) =>
  Object.fromEntries(COUNTED.map((name) => [name, Number(row?.[name] ?? 0)])) as Readonly<
    Record<(typeof COUNTED)[number], number>
  >;

/** How many rows were withdrawn on these days. */
function withdrawnIn(withdrawals: readonly DayWithdrawal[]): number {
  return withdrawals.reduce(
    (sum, { unlistedRows, withheld }) => sum + (withheld === null ? unlistedRows : 0),
    0,
  );
}

/**
 * Copies the stored values that are to be kept into the staged rows, so that the merge finds no difference there.
 * Call it between COPY and merge, with the locks of the days held.
 *
 * @param target the table with the stored rows.
 */
async function preserveStored(
  client: PoolClient,
  table: TableDefinition,
  rows: readonly Row[],
  target: string,
  { columns, rounded, sometimesBlank = [] }: PreservedColumns,
): Promise<void> {
  // A file may fill several tables: not all of these are columns of this one.
  const isOwn = (column: string) => table.fields.some((field) => field.column === column);
  const filled = columns
    .filter(isOwn)
    .map((column) => `${quote(column)} = coalesce(t.${quote(column)}, s.${quote(column)})`);
  const kept = sometimesBlank
    .filter(isOwn)
    .map((column) => `${quote(column)} = coalesce(s.${quote(column)}, t.${quote(column)})`);
  const exact = Object.entries(rounded)
    .filter(([column]) => isOwn(column))
    .map(([column, within]) => {
      const [old, incoming] = [`t.${quote(column)}`, `s.${quote(column)}`];
      return `${quote(column)} = case when abs(${old} - ${incoming}) < ${Number(within)} then ${old} else ${incoming} end`;
    });
  const assignments = [...filled, ...kept, ...exact];
  if (assignments.length === 0) return;
  const same = table.key.map((column) => `t.${quote(column)} = s.${quote(column)}`).join(' and ');
  const bounded =
    table.dateColumn === null ? '' : `and t.${quote(table.dateColumn)} between $1::date and $2::date`;
  await client.query(
    `update ${mergeSql(table).stage} s set ${assignments.join(', ')} from ${target} t where ${same} ${bounded}`,
    [...daySpan(table, rows)],
  );
}

interface DayCheck {
  readonly day: string;
  readonly gone: number;
  readonly left: number;
  /** Rows that were there before the response. */
  readonly before: number;
  readonly most: number;
  /** A session that always has rows would have none left. */
  readonly emptied: boolean;
  readonly allowed: boolean;
  readonly rows: readonly RowKey[];
}

async function withdraw(
  client: PoolClient,
  table: TableDefinition,
  {
    exchange,
    days,
    mayBeEmpty,
    checkedDays,
    listed,
  }: FullSet & { readonly checkedDays: readonly string[]; readonly listed: number | null },
  { loadId, position, maxWithdrawShare, accepted = [], mostRows = new Map() }: ApplyOptions,
  sql: ApplySql,
): Promise<DayWithdrawal[]> {
  const result = await client.query<DayCheck>({
    ...sql.withdraw,
    values: [
      loadId,
      exchange,
      maxWithdrawShare,
      ALWAYS_WITHDRAWN,
      mayBeEmpty,
      checkedDays,
      accepted,
      listed,
      JSON.stringify(Object.fromEntries(mostRows)),
    ],
  });
  return result.rows.map((row) => ({
    table: table.name,
    day: days === null ? null : row.day,
    position,
    unlistedRows: row.gone,
    maxRows: row.most,
    remainingRows: row.left,
    withheld: row.allowed ? null : reasonToWithhold(table, row, days),
    rows: row.rows,
  }));
}

function reasonToWithhold(
  { name }: TableDefinition,
  { day, gone, before, most, emptied }: DayCheck,
  days: DayRange | null,
): string {
  const once = before < most ? ` (there once were ${most})` : '';
  const ofDay = days !== null && days.from !== days.to ? ` of ${day}` : '';
  const missing = `${gone} of ${before} rows of market.${name}${ofDay} were not listed any more${once}`;
  if (!emptied) return `${missing}; more than may be withdrawn (EOD_MAX_WITHDRAW_SHARE), so none was`;
  return `${missing}, ${days === null ? 'and no other row was' : 'and no other row of their day was'}; the response is taken as incomplete, so none was withdrawn`;
}

/** First and last day on which a load may have written rows; `-infinity` and `infinity` where that may be any. */
export function changedDays(
  table: TableDefinition,
  rows: readonly Row[],
  fullSet: FullSet | undefined,
): { readonly from: string; readonly to: string } {
  const day = comparedDay(table);
  const days = rows.length === 0 || day === null ? [] : daySpan(table, rows);
  if (day !== null && fullSet?.days) days.push(fullSet.days.from, fullSet.days.to);
  days.sort();
  return { from: days[0] ?? '-infinity', to: days.at(-1) ?? 'infinity' };
}

/** First and last day of the rows, where the table has a date column; dates sort as text. */
function daySpan({ dateColumn }: TableDefinition, rows: readonly Row[]): string[] {
  if (dateColumn === null) return [];
  let first = '9999-12-31';
  let last = '0001-01-01';
  for (const day of countValues(rows, dateColumn).keys() as Iterable<string>) {
    if (day < first) first = day;
    if (day > last) last = day;
  }
  return [first, last];
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
