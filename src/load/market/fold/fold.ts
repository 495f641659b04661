import type { Place } from '../../../core/place.ts';
import type { Shape } from '../../../operations/operation.ts';
import { listedInFull, namesFilling } from '../../../operations/registry.ts';
import { countValues, type Rows } from '../../../operations/rows.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import type { Transaction } from '../../database/transaction.ts';
import type { KeptAnswer } from '../../state/answers/answers.ts';
import type { Pruned } from '../../state/answers/pruned.ts';
import { type AnswerToFold, type FoldScope, lastPlaces } from '../../state/answers/to-fold.ts';
import type { LoadScope } from '../../state/loads/other-loads.ts';
import { acceptedDays, type DayWithdrawal, type DecidedDays, NO_DAY } from '../../state/withdrawals.ts';
import {
  applyStaged,
  copyAsNew,
  countsOf,
  daysOf,
  daysOfRows,
  type FullSet,
  hasDuplicates,
  type Merged,
  preserveStored,
  stageRows,
  type TableAnswer,
  type TableRows,
} from '../merge/merge.ts';
import { mergeSql } from '../merge/merge-sql.ts';
import { foldSql } from './fold-sql.ts';

// Folding: the kept answers about some rows are applied again, in the order in which they were fetched, to temporary
// tables, and the result replaces what is stored. The load of a late answer calls it (merge-or-fold.ts), and a replay
// (refold-part.ts).

/** Reads a kept answer with the code of today, its days judged as of the moment of its call. */
export type ReadAgain = (answer: KeptAnswer) => Promise<{
  readonly batches: readonly TableRows[];
  readonly fullSets: readonly FullSet[];
  readonly preserved?: TableAnswer['preserved'];
}>;

/** The part of an answer that is about one table, and the load that stores it. */
export interface TableLoad extends TableAnswer {
  readonly table: TableDefinition;
  readonly runId: number;
  readonly loadId: number;
  readonly exchange: string;
  readonly place: Place;
  /** The time of its call. */
  readonly fetchedAt: Date;
  /** Largest share of the rows present that may be withdrawn, as a fraction. */
  readonly maxWithdrawShare: number;
  readonly readAgain: ReadAgain;
}

/** What became of one table's records. */
export interface MergedTable extends Merged {
  /** The days whose answers were folded, if they list them in full: then their withdrawals were decided again, too. */
  readonly folded: DecidedDays | null;
  /** Its days of which it changed nothing, because a later answer about them is pruned. */
  readonly ignoredDays: readonly string[];
}

/** Which rows an answer may be about, and what the loads of these rows are found by. */
export interface Scope extends LoadScope {
  readonly lists: Shape['fullSet'];
  /** Days it is about; null where days do not matter. */
  readonly asked: ReadonlySet<string> | null;
}

export function scopeOfDays(table: TableDefinition, exchange: string, days: readonly string[] | null): Scope {
  const sorted = days?.toSorted() ?? [];
  const [from, to] = [sorted[0], sorted.at(-1)];
  return {
    operations: namesFilling([table]),
    exchange,
    lists: listedInFull(table),
    asked: days && new Set(sorted),
    days: from === undefined || to === undefined ? null : { from, to },
  };
}

/** Days or instruments whose answers are folded anew, although none of them is loaded late. */
interface RefoldedPart {
  readonly table: TableDefinition;
  readonly runId: number;
  readonly loadId: number;
  readonly windowId: number;
  readonly exchange: string;
  readonly maxWithdrawShare: number;
  /** The days of which an answer is kept; null if the table has none that answers list in full. */
  readonly days: readonly string[] | null;
  /** In upper case; null: all. */
  readonly instruments: readonly string[] | null;
  /** The answers about them after those that are pruned, in their order. */
  readonly answers: readonly AnswerToFold[];
  readonly pruned: Pruned | null;
  readonly readAnswer: ReadAnswer;
  /** Is the history replaced by the one that the answers make in this order? If not, what differs becomes a new revision. */
  readonly history: boolean;
}

/** Reads the part of a kept answer that is about a table. */
type ReadAnswer = (answerId: number) => Promise<TableAnswer>;

/** What became of the rows of a part. */
export interface RefoldedTable
  extends Pick<Merged, 'inserted' | 'updated' | 'unchanged' | 'withdrawn' | 'withdrawals'>,
    Pick<MergedTable, 'folded'> {
  /** How many rows or revisions differed. */
  readonly changed: number;
  /** By the place of an answer, the days of which it decides nothing, because a later answer about them is pruned. */
  readonly ignored?: ReadonlyMap<Place, readonly string[]>;
}

/** Folds all answers about a part of a table anew and stores what comes out differently. Call it with the locks held. */
export async function refoldTable(tx: Transaction, part: RefoldedPart): Promise<RefoldedTable> {
  const { table, exchange, days } = part;
  const scope = scopeOfDays(table, exchange, listedInFull(table) === 'days' ? (days ?? []) : null);
  const load = { ...part, rows: null, fullSet: undefined, place: null, fetchedAt: new Date(0) };
  return foldInOrder(tx, load, { ...scope, instruments: null }, part);
}

/** The rows that a fold is about: the answers are given. */
export async function foldInOrder(
  tx: Transaction,
  load: Omit<TableLoad, 'rows' | 'place' | 'readAgain'> & {
    readonly rows: Rows | null;
    readonly place: Place | null;
  },
  scope: Scope & FoldScope,
  given: Pick<RefoldedPart, 'answers' | 'pruned' | 'readAnswer'> &
    Partial<Pick<RefoldedPart, 'history' | 'instruments'>>,
): Promise<MergedTable & RefoldedTable> {
  const { client } = tx;
  const { table, exchange } = load;
  const { answers, pruned, readAnswer, history, instruments = null } = given;
  const { asked, lists } = scope;
  const isRefold = history !== undefined;
  const few = lists === 'none' && !isRefold;
  const days = asked === null ? [NO_DAY] : [...asked].sort();
  const lastPruned = pruned === null ? new Map() : await lastPlaces(tx, scope, asked && days, pruned.version);
  /**
   * Of these days an answer decides something: the pruned ones about them are earlier. The last pruned one may be among
   * the answers, because its body is kept for its rejects.
   */
  const decides = (place: Place, day: string) => (lastPruned.get(day) ?? '') <= place;
  const decidedBy = (place: Place) => new Set(days.filter((day) => decides(place, day)));
  const ignored = new Map<Place, readonly string[]>();
  const sql = foldSql(table, asked ?? []);
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
  /** Of each day, the one that was held back last, and that no answer has decided since. */
  const heldBack = new Map<string, DayWithdrawal>();
  /** Days that the answers so far are about. */
  const seen = new Set<string>();
  const now =
    (await client.query<{ now: string }>('select statement_timestamp()::text as now')).rows[0]?.now ?? '';
  for (const { answerId, place, fetchedAt, load: first } of answers) {
    const own = answerId === null;
    const isLate = isRefold && pruned !== null && place < pruned.place;
    // Where no answer lists anything in full, it adds the rows that are not there, as when it was loaded.
    const adds = isLate && lists === 'none';
    const decided = adds ? new Set(days) : decidedBy(place);
    if (decided.size === 0 && !isLate) continue;
    const answer = own ? load : await readAnswer(answerId);
    const hasRows = (answer.rows?.length ?? 0) > 0 || answer.fullSet !== undefined;
    if (isLate && hasRows) ignored.set(place, without(days, decided));
    if (decided.size === 0) continue;
    const rows = asked === null ? (answer.rows ?? []) : ofDays(table, answer.rows ?? [], decided);
    const by = { runId: first?.runId ?? load.runId, loadId: first?.id ?? load.loadId };
    if (asked !== null && pruned === null) {
      const about = new Set([...daysOfRows(table, rows), ...daysOf(answer.fullSet)]);
      const isFirst = [...about].every((day) => !seen.has(day));
      for (const day of about) seen.add(day);
      // Of these days there is nothing yet to compare it with.
      if (isFirst && !own && !hasDuplicates(table, rows)) {
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
      { ...answer, rows },
      {
        ...by,
        place,
        fetchedAt: new Date(fetchedAt),
        maxWithdrawShare: load.maxWithdrawShare,
        within: decided,
        accepted: accepted.flatMap((one) => (one.place === place ? [one.day] : [])),
      },
      sql,
    );
    for (const day of applied.checkedDays) heldBack.delete(day);
    for (const one of applied.withdrawals) {
      withdrawals.push(one);
      if (one.heldBack !== null) heldBack.set(one.day ?? NO_DAY, one);
    }
  }
  if (load.rows !== null && load.preserved !== undefined) {
    // What it does not know agrees with whatever is there in the end.
    await preserveStored(client, table, { into: sql.own, from: sql.target, rows: load.rows }, load.preserved);
  }
  const stored = await storeFolded(tx, load, { sql, days, instruments, history });
  let withdrawn = Number(stored?.withdrawn ?? 0);
  if (lists !== 'none') {
    if (history !== true) {
      const rest = await client.query(sql.withdrawRest, [load.loadId, exchange, days]);
      withdrawn += rest.rowCount ?? 0;
    }
    await client.query(sql.storeDayRows, [exchange, days]);
  }
  const isFolded = new Set(answers.map(({ place }) => place));
  const folded = {
    table: table.name,
    operations: scope.operations,
    days: asked === null ? null : days,
    isDecided: (place: Place, day: string) => pruned === null || (isFolded.has(place) && decides(place, day)),
  };
  const counts = countsOf(stored);
  const ignoredDays = load.rows === null || load.place === null ? [] : without(days, decidedBy(load.place));
  // Its records of these days were not staged.
  const left = load.rows === null ? 0 : load.rows.length - sumOf(counts);
  return {
    ...counts,
    stale: counts.stale + left,
    // Which of the rows are named differently now was not compared.
    renamed: counts.written,
    changed: Number(stored?.changed ?? 0) + withdrawn,
    ignored,
    withdrawn,
    withdrawals: withdrawals.map((one) =>
      one.heldBack === null ? one : { ...one, isOutdated: heldBack.get(one.day ?? NO_DAY) !== one },
    ),
    checkedDays: [],
    folded: lists === 'none' ? null : folded,
    ignoredDays,
  };
}

/** The rows of some days. */
function ofDays({ dateColumn }: TableDefinition, rows: Rows, days: ReadonlySet<string>): Rows {
  if (dateColumn === null) return rows;
  const isAll = [...countValues(rows, dateColumn).keys()].every((day) => days.has(String(day)));
  return isAll ? rows : [...rows].filter((row) => days.has(row[dateColumn] as string));
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

/** The part of an answer that is about one table. */
export const partOf = (
  { batches, fullSets, preserved }: Awaited<ReturnType<ReadAgain>>,
  table: TableDefinition,
): TableAnswer => ({
  rows: batches.find((batch) => batch.table === table)?.rows ?? [],
  fullSet: fullSets.find((set) => set.table === table),
  preserved,
});
