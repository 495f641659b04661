import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { messageOf, PipelineError } from '../../../core/errors.ts';
import type { Position } from '../../../core/position.ts';
import type { Shape } from '../../../operations/operation.ts';
import { listedInFull, namesFilling } from '../../../operations/registry.ts';
import { countValues } from '../../../operations/rows.ts';
import type { Row, TableDefinition } from '../../../operations/table.ts';
import { databaseError } from '../../database/database-errors.ts';
import type { Transaction } from '../../database/transaction.ts';
import type { LoadScope } from '../../state/loads/other-loads.ts';
import type { Pruned } from '../../state/responses/pruned.ts';
import type { ResponseSaid } from '../../state/responses/response-facts.ts';
import { type KeptResponse, readKeptResponse } from '../../state/responses/responses.ts';
import { type FoldScope, lastPositions, type ResponseToFold } from '../../state/responses/to-fold.ts';
import { acceptedDays, type DayWithdrawal, type DecidedDays, NO_DAY } from '../../state/withdrawals.ts';
import {
  applyStaged,
  copyAsNew,
  countsOf,
  daysOf,
  daysOfRows,
  type FullSet,
  hasDuplicates,
  type LoadOfResponse,
  type Merged,
  preserveStored,
  stageRows,
  type TableResponse,
  type TableRows,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import { foldSql } from './fold-sql.ts';

// Folding: the kept responses about some rows are applied again, in the order in which they were fetched, to temporary
// tables, and the result replaces what is stored. The load of a late response calls it (merge-or-fold.ts), and a replay
// (refold-part.ts).

/** A response as the code of today reads it, its days judged as of the moment of its call. */
export interface ResponseReading extends ResponseSaid {
  readonly batches: readonly TableRows[];
  readonly fullSets: readonly FullSet[];
  readonly preserved?: TableResponse['preserved'];
}

export type ReadAgain = (response: KeptResponse) => Promise<ResponseReading>;

/** Reads a kept response; null if it is not kept any more. */
export type ReadKept = (responseId: number) => Promise<ResponseReading | null>;

/**
 * A function that reads kept responses; @throws PipelineError `unreadable` if the code of today cannot read one: without
 * it, it is not known what the others left.
 */
export function keptReader(db: NodePgDatabase, readAgain: ReadAgain): ReadKept {
  return async (responseId) => {
    const response = await readKeptResponse(db, responseId);
    if (response === null) return null;
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

/** Reads the part of a kept response that is about one table. */
export async function readTable(
  read: ReadKept,
  responseId: number,
  table: TableDefinition,
): Promise<TableResponse> {
  const reading = await read(responseId);
  if (reading === null) throw new Error(`response ${responseId} was pruned while its day was locked`);
  return {
    rows: reading.batches.find((batch) => batch.table === table)?.rows ?? [],
    fullSet: reading.fullSets.find((set) => set.table === table),
    preserved: reading.preserved,
  };
}

/** The part of a response that is about one table, and the load that stores it. */
export interface TableLoad extends TableResponse, LoadOfResponse {
  readonly table: TableDefinition;
  readonly exchange: string;
  readonly readAgain: ReadAgain;
}

/** What became of one table's records. */
export interface MergedTable extends Merged {
  /**
   * The days whose responses were folded, if they list them in full: then their withdrawals were decided again, too.
   */
  readonly folded: DecidedDays | null;
  /** Its days of which it changed nothing, because a later response about them is pruned. */
  readonly ignoredDays: readonly string[];
}

/** Which rows a response may be about, and what the loads of these rows are found by. */
export interface Scope extends LoadScope {
  readonly lists: Shape['fullSet'];
  /** Days it is about; null where days do not matter. */
  readonly requested: ReadonlySet<string> | null;
}

export function scopeOfDays(table: TableDefinition, exchange: string, days: readonly string[] | null): Scope {
  const sorted = days?.toSorted() ?? [];
  const [from, to] = [sorted[0], sorted.at(-1)];
  return {
    operations: namesFilling([table]),
    exchange,
    lists: listedInFull(table),
    requested: days && new Set(sorted),
    days: from === undefined || to === undefined ? null : { from, to },
  };
}

/** Days or instruments whose responses are folded anew, although none of them is loaded late. */
interface RefoldedPart
  extends Pick<TableLoad, 'table' | 'exchange' | 'runId' | 'loadId' | 'maxWithdrawShare'> {
  /** The days of which a response is kept; null if the table has none that responses list in full. */
  readonly days: readonly string[] | null;
  /** In upper case; null: all. */
  readonly instruments: readonly string[] | null;
  /** The responses about them after those that are pruned, in their order. */
  readonly responses: readonly ResponseToFold[];
  readonly pruned: Pruned | null;
  readonly read: ReadKept;
  /**
   * True if the history is replaced by the one that the responses make in this order. If not, what differs becomes a
   * new revision.
   */
  readonly history: boolean;
}

/** What became of the rows of a part. */
export interface RefoldedTable
  extends Pick<Merged, 'inserted' | 'updated' | 'unchanged' | 'withdrawn' | 'withdrawals'>,
    Pick<MergedTable, 'folded'> {
  /** How many rows or revisions differed. */
  readonly changed: number;
  /**
   * By the position of a response, the days of which it decides nothing, because a later response about them is pruned.
   */
  readonly ignored?: ReadonlyMap<Position, readonly string[]>;
}

/**
 * Folds all responses about a part of a table anew and stores what comes out differently. Call it with the locks held.
 */
export async function refoldTable(tx: Transaction, part: RefoldedPart): Promise<RefoldedTable> {
  const { table, exchange, days } = part;
  const scope = scopeOfDays(table, exchange, listedInFull(table) === 'days' ? (days ?? []) : null);
  const load = { ...part, rows: null, fullSet: undefined, position: null, fetchedAt: new Date(0) };
  return foldInOrder(tx, load, { ...scope, instruments: null }, part);
}

/** The rows that a fold is about: the responses are given. */
export async function foldInOrder(
  tx: Transaction,
  load: Omit<TableLoad, 'rows' | 'position' | 'readAgain'> & {
    readonly rows: readonly Row[] | null;
    readonly position: Position | null;
  },
  scope: Scope & FoldScope,
  given: Pick<RefoldedPart, 'responses' | 'pruned' | 'read'> &
    Partial<Pick<RefoldedPart, 'history' | 'instruments'>>,
): Promise<MergedTable & RefoldedTable> {
  const { client } = tx;
  const { table, exchange } = load;
  const { responses, pruned, read, history, instruments = null } = given;
  const { requested, lists } = scope;
  const isRefold = history !== undefined;
  const few = lists === 'none' && !isRefold;
  const days = requested === null ? [NO_DAY] : [...requested].sort();
  const lastPruned =
    pruned === null ? new Map() : await lastPositions(tx, scope, requested && days, pruned.version);
  /**
   * Of these days a response decides something: the pruned ones about them are earlier. The last pruned one may be
   * among the responses, because its body is kept for its rejects.
   */
  const decides = (position: Position, day: string) => (lastPruned.get(day) ?? '') <= position;
  const decidedBy = (position: Position) => new Set(days.filter((day) => decides(position, day)));
  const ignored = new Map<Position, readonly string[]>();
  const sql = foldSql(table, requested ?? []);
  await client.query(isRefold ? sql.create : `${sql.create}; ${sql.createOwn}`);
  const accepted = await acceptedDays(tx, { table: table.name, exchange });
  if (few && load.rows !== null) {
    await client.query(`truncate ${mergeSql(table).stage}`);
    await stageRows(client, table, load.rows);
    await client.query(sql.noteOwn);
  }
  if (pruned !== null) {
    for (const text of few ? sql.beginOwn : sql.begin)
      await client.query(text, [exchange, days, instruments, pruned.version]);
  }
  const withdrawals: DayWithdrawal[] = [];
  /** Of each day, the one that was withheld last, and that no response has decided since. */
  const withheld = new Map<string, DayWithdrawal>();
  /** Days that the responses so far are about. */
  const seen = new Set<string>();
  const now =
    (await client.query<{ now: string }>('select statement_timestamp()::text as now')).rows[0]?.now ?? '';
  for (const { responseId, position, fetchedAt, load: first } of responses) {
    const own = responseId === null;
    const isLate = isRefold && pruned !== null && position < pruned.position;
    // Where no response lists anything in full, it adds the rows that are not there, as when it was loaded.
    const adds = isLate && lists === 'none';
    const decided = adds ? new Set(days) : decidedBy(position);
    if (decided.size === 0 && !isLate) continue;
    const response = own ? load : await readTable(read, responseId, table);
    const hasRows = (response.rows?.length ?? 0) > 0 || response.fullSet !== undefined;
    if (isLate && hasRows) ignored.set(position, without(days, decided));
    if (decided.size === 0) continue;
    const rows = requested === null ? (response.rows ?? []) : ofDays(table, response.rows ?? [], decided);
    const by = { runId: first?.runId ?? load.runId, loadId: first?.id ?? load.loadId };
    if (requested !== null && pruned === null) {
      const about = new Set([...daysOfRows(table, rows), ...daysOf(response.fullSet)]);
      const isFirst = [...about].every((day) => !seen.has(day));
      for (const day of about) seen.add(day);
      // Of these days there is nothing yet to compare it with.
      if (isFirst && !hasDuplicates(table, rows)) {
        if (own) {
          await client.query(`truncate ${mergeSql(table).stage}`);
          await stageRows(client, table, rows);
          await client.query(sql.noteOwn);
        }
        await copyAsNew(client, sql.copyNew, { table, rows, now, ...by });
        continue;
      }
    }
    await client.query(`truncate ${mergeSql(table).stage}`);
    await stageRows(client, table, rows);
    if (adds) await client.query(sql.skipKnown);
    if (own && !few) await client.query(sql.noteOwn);
    const applied = await applyStaged(
      client,
      table,
      { ...response, rows },
      {
        ...by,
        position,
        fetchedAt: new Date(fetchedAt),
        maxWithdrawShare: load.maxWithdrawShare,
        within: decided,
        accepted: accepted.flatMap((one) => (one.position === position ? [one.day] : [])),
      },
      sql,
    );
    for (const day of applied.checkedDays) withheld.delete(day);
    for (const one of applied.withdrawals) {
      withdrawals.push(one);
      if (one.withheld !== null) withheld.set(one.day ?? NO_DAY, one);
    }
  }
  if (load.rows !== null && load.preserved !== undefined) {
    // What it does not know agrees with whatever is there in the end.
    await preserveStored(client, table, { into: sql.own, from: sql.target, rows: load.rows }, load.preserved);
  }
  // Without statistics the planner takes them to be small, and compares each row with all others.
  if (isRefold || (load.rows?.length ?? 0) > FEW_ROWS)
    await client.query(isRefold ? sql.analyze : `${sql.analyze}; ${sql.analyzeOwn}`);
  const stored = await storeFolded(tx, load, { sql, days, instruments, history });
  let withdrawn = Number(stored?.withdrawn ?? 0);
  if (lists !== 'none') {
    if (history !== true) {
      const rest = await client.query(sql.withdrawRest, [load.loadId, exchange, days]);
      withdrawn += rest.rowCount ?? 0;
    }
    await client.query(sql.storeDayRows, [exchange, days]);
  }
  const isFolded = new Set(responses.map(({ position }) => position));
  const folded = {
    table: table.name,
    operations: scope.operations,
    days: requested === null ? null : days,
    isDecided: (position: Position, day: string) =>
      pruned === null || (isFolded.has(position) && decides(position, day)),
  };
  const counts = countsOf(stored);
  const ignoredDays =
    load.rows === null || load.position === null ? [] : without(days, decidedBy(load.position));
  // Its records of these days were not staged.
  const left = load.rows === null ? 0 : load.rows.length - sumOf(counts);
  return {
    ...counts,
    stale: counts.stale + left,
    changed: Number(stored?.changed ?? 0) + withdrawn,
    ignored,
    withdrawn,
    withdrawals: withdrawals.map((one) =>
      one.withheld === null ? one : { ...one, isOutdated: withheld.get(one.day ?? NO_DAY) !== one },
    ),
    checkedDays: [],
    folded: lists === 'none' ? null : folded,
    ignoredDays,
  };
}

/** So few rows are compared with one another in no time. */
const FEW_ROWS = 100;

/** The rows of some days. */
function ofDays(
  { dateColumn }: TableDefinition,
  rows: readonly Row[],
  days: ReadonlySet<string>,
): readonly Row[] {
  if (dateColumn === null) return rows;
  const isAll = [...countValues(rows, dateColumn).keys()].every((day) => days.has(String(day)));
  return isAll ? rows : rows.filter((row) => days.has(row[dateColumn] as string));
}

const without = (days: readonly string[], others: ReadonlySet<string>) =>
  days.filter((day) => !others.has(day));

/** Writes the rows that differ from the result of a fold. @returns what was counted. */
async function storeFolded(
  { client }: Transaction,
  { runId, loadId, exchange, fetchedAt }: Pick<TableLoad, 'runId' | 'loadId' | 'exchange' | 'fetchedAt'>,
  {
    sql,
    days,
    instruments,
    history,
  }: {
    readonly sql: ReturnType<typeof foldSql>;
    readonly days: readonly string[];
    readonly instruments: readonly string[] | null;
    readonly history: boolean | undefined;
  },
): Promise<Readonly<Record<string, string>> | undefined> {
  if (history === undefined) {
    const values = [runId, loadId, days, fetchedAt.toISOString()];
    return (await client.query<Record<string, string>>(sql.store, values)).rows[0];
  }
  if (!history) return (await client.query<Record<string, string>>(sql.storePart, [runId, loadId])).rows[0];
  const values = [exchange, days, instruments];
  const forgotten = (await client.query<Record<string, string>>(sql.forget, values)).rows[0];
  if (Number(forgotten?.changed) === 0) return forgotten;
  const replaced = (await client.query<Record<string, string>>(sql.replace, values)).rows[0];
  return { ...replaced, changed: forgotten?.changed ?? '0' };
}

const sumOf = ({ inserted, updated, unchanged, stale, duplicate }: ReturnType<typeof countsOf>) =>
  inserted + updated + unchanged + stale + duplicate;
