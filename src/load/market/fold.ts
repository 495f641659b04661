import type { PoolClient } from 'pg';
import { PipelineError } from '../../core/errors.ts';
import type { Shape } from '../../operations/operation.ts';
import { dataSetsFilling } from '../../operations/registry.ts';
import { countValues, type Rows } from '../../operations/rows.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { answersToFold, hasLaterLoad, type LoadScope } from '../state/loads/later.ts';
import { type KeptAnswer, readKeptAnswer } from '../state/responses/kept.ts';
import { acceptedDays, type DayWithdrawal, NO_DAY, onDays, replaceRefusals } from '../state/withdrawals.ts';
import { foldSql } from './fold-sql.ts';
import {
  applyStaged,
  copyNewDays,
  countsOf,
  daysOf,
  type FullSet,
  type Merged,
  mergeFew,
  stageRows,
  type TableAnswer,
  withdrawnIn,
} from './merge.ts';
import { mergeSql } from './merge-sql.ts';

/**
 * Reads a kept answer as it would be stored if it came now, its days seen as of its call.
 *
 * @returns null where it is not certain what was stored of it.
 */
export type ReadKept = (kept: KeptAnswer) => Promise<{
  readonly batches: readonly { readonly table: TableDefinition; readonly rows: Rows }[];
  readonly fullSets: readonly FullSet[];
  readonly preserved?: TableAnswer['preserved'];
} | null>;

/** One answer, as one table is concerned, and the load that stores it. */
interface TableLoad extends TableAnswer {
  readonly table: TableDefinition;
  readonly runId: number;
  readonly loadId: number;
  readonly windowId: number;
  readonly exchange: string;
  /** When the source was asked. */
  readonly fetchedAt: Date;
  /** Largest share of the rows present that may be withdrawn, as a fraction. */
  readonly maxWithdrawShare: number;
  /** Were the tables emptied, or empty, to load all answers anew? Then the history has to come out as well. */
  readonly fresh?: boolean | undefined;
  /** Without it no kept answer can be read. */
  readonly readKept?: ReadKept | undefined;
}

/** What became of one table's records. */
interface MergedTable extends Merged {
  /** Were all answers folded anew? Then withdrawals of the days were decided again, too. */
  readonly folded: boolean;
  /** What could not be decided, because answers are kept no longer. */
  readonly undecided: string | null;
}

/**
 * Merges an answer into a table, so that its rows are those that all answers loaded so far end in when they
 * are loaded in the order in which they were fetched. Nearly always this one was fetched last, and is simply
 * merged. Where it was not, the answers of its days are read again from where they are kept and folded, and
 * what comes out differently is written. To be called inside a transaction, after `ensureStage`, with the locks held:
 * so whatever was loaded before is seen.
 */
export async function mergeTable(
  tx: Transaction,
  load: TableLoad & {
    /** All days of the rows and those it lists in full. */
    readonly days: readonly string[];
    /** Is it known that nothing was loaded of an answer that was fetched later? */
    readonly isLast: boolean;
  },
): Promise<MergedTable> {
  const { client } = tx;
  const { table, rows, days, fetchedAt } = load;
  const sql = mergeSql(table);
  const scope = scopeOf(load);
  const isLast = load.isLast || !(await hasLaterLoad(tx, scope, fetchedAt, { orAtOnce: true }));
  if (isLast) {
    const added =
      scope.whole === 'days'
        ? await copyNewDays(client, load, days)
        : await mergeFew(client, table, load, load);
    if (added !== null) return { ...added, folded: false, undecided: null };
  }
  await stageRows(client, table, rows);
  const inOrder = async () => {
    const merged = await withdrawAccepted(tx, load, await applyStaged(client, table, load, load, sql));
    return { ...merged, folded: false, undecided: null };
  };
  if (isLast) return inOrder();
  // Where no answer withdraws, a record that is new or that is surely older decides nothing.
  if (scope.whole === 'none' && load.fresh !== true && !(await hasConflict(client, table, fetchedAt)))
    return inOrder();
  const folded = await foldAnswers(tx, load, scope);
  if (folded !== null) return { ...folded, folded: true, undecided: null };
  await client.query(`truncate ${sql.stage}`);
  await stageRows(client, table, rows);
  if (!(await hasLaterLoad(tx, scope, fetchedAt))) return inOrder();
  return mergeCertain(client, load, scope);
}

/**
 * Withdraws what was refused just now, but was accepted by a person when this very answer was loaded before: a
 * replay into tables that were emptied keeps to that. The staged rows must be those of the answer.
 */
async function withdrawAccepted(tx: Transaction, load: TableLoad, merged: Merged): Promise<Merged> {
  if (merged.withdrawals.every(({ refused }) => refused === null)) return merged;
  const { table, exchange, fetchedAt } = load;
  const accepted = (await acceptedDays(tx, { table: table.name, exchange }))
    .filter((one) => Date.parse(one.fetchedAt) === fetchedAt.getTime())
    .map(({ day }) => day);
  if (accepted.length === 0) return merged;
  const storing = { ...load, within: new Set(accepted), accepted };
  const again = await applyStaged(tx.client, table, { ...load, rows: [] }, storing, mergeSql(table));
  const others = merged.withdrawals.filter(({ day }) => !accepted.includes(day ?? NO_DAY));
  const withdrawals = [...others, ...again.withdrawals];
  return { ...merged, withdrawn: withdrawnIn(withdrawals), withdrawals };
}

async function hasConflict(client: PoolClient, table: TableDefinition, fetchedAt: Date): Promise<boolean> {
  const found = await client.query(foldSql(table, 'none').hasConflict, [fetchedAt.toISOString()]);
  return (found.rowCount ?? 0) > 0;
}

/**
 * Folds the answers about some days anew where something was loaded that was fetched after this moment.
 *
 * @returns null where nothing was, or not all answers are kept: then nothing was written.
 */
export async function foldIfLate(tx: Transaction, load: Omit<TableLoad, 'rows'>): Promise<Merged | null> {
  const scope = scopeOf({ ...load, rows: [] });
  if (!(await hasLaterLoad(tx, scope, load.fetchedAt))) return null;
  return foldAnswers(tx, { ...load, rows: null }, scope);
}

/** Which rows an answer may speak for, and by what their loads are found. */
interface Scope extends LoadScope {
  readonly whole: Shape['fullSet'];
  /** Days it speaks for; null where days do not matter. */
  readonly asked: ReadonlySet<string> | null;
}

export function scopeOf({
  table,
  exchange,
  rows,
  fullSet,
}: Pick<TableLoad, 'table' | 'exchange' | 'rows' | 'fullSet'>): Scope {
  const filling = dataSetsFilling([table]);
  const shapes = filling.flatMap((operation) => operation.shapes.filter((shape) => shape.table === table));
  const whole = shapes.find((shape) => shape.fullSet !== 'none')?.fullSet ?? 'none';
  const scope = { operations: filling.map(({ name }) => name), exchange, whole };
  const { dateColumn } = table;
  if (whole !== 'days' || dateColumn === null) return { ...scope, asked: null, days: null };
  const listed = [...countValues(rows, dateColumn).keys()] as string[];
  const asked = new Set([...listed, ...daysOf(fullSet)]);
  const [first, ...days] = [...asked].sort();
  if (first === undefined) return { ...scope, asked, days: null };
  return { ...scope, asked, days: { from: first, to: days.at(-1) ?? first } };
}

/**
 * Applies all answers that may speak for these rows, in the order in which they were fetched, to tables of the
 * transaction, with the statements that apply them to `market`; then writes what came out differently.
 *
 * @returns null where one of them is not kept, or cannot be read: then nothing was written.
 */
async function foldAnswers(
  tx: Transaction,
  load: Omit<TableLoad, 'rows'> & { readonly rows: Rows | null },
  scope: Scope,
): Promise<Merged | null> {
  const { client } = tx;
  const { table, exchange, readKept } = load;
  if (readKept === undefined) return null;
  const { asked, whole } = scope;
  const day = table.fields.find(({ column }) => column === table.dateColumn);
  const few = whole === 'none';
  const answers = await answersToFold(
    tx,
    // Where the day of a row follows from the question, only questions about the same days list it.
    { ...scope, sameInstruments: few, sameDays: few && day !== undefined && day.from !== 'answer' },
    { windowId: load.windowId, fetchedAt: load.rows === null ? null : load.fetchedAt },
  );
  if (answers === null) return null;
  const sql = foldSql(table, whole);
  await client.query(sql.create);
  const accepted = await acceptedDays(tx, { table: table.name, exchange });
  const refusals = new Map<string, DayWithdrawal & { readonly fetchedAt: string }>();
  for (const { responseId, fetchedAt, loadId, runId } of answers) {
    const own = responseId === null;
    const answer = own ? load : await readTable(tx, load, responseId, readKept);
    if (answer === null) return null;
    const { dateColumn } = table;
    const rows = [...(answer.rows ?? [])].filter(
      (row) => asked === null || dateColumn === null || asked.has(row[dateColumn] as string),
    );
    await client.query(`truncate ${mergeSql(table).stage}`);
    await stageRows(client, table, rows);
    if (own) await client.query(sql.noteOwn);
    const { withdrawals, checkedDays } = await applyStaged(
      client,
      table,
      { ...answer, rows },
      {
        runId: runId ?? load.runId,
        loadId: loadId ?? load.loadId,
        fetchedAt: new Date(fetchedAt),
        maxWithdrawShare: load.maxWithdrawShare,
        within: asked,
        accepted: accepted.flatMap((one) => (one.fetchedAt === fetchedAt ? [one.day] : [])),
      },
      sql,
    );
    for (const day of checkedDays) refusals.delete(day);
    for (const one of withdrawals) {
      if (one.refused !== null) refusals.set(one.day ?? NO_DAY, { ...one, fetchedAt });
    }
  }
  const days = asked === null ? [NO_DAY] : [...asked].sort();
  const stored = await client.query<Record<string, string>>(sql.store, [
    load.runId,
    load.loadId,
    days,
    load.fetchedAt.toISOString(),
  ]);
  const withdrawals: DayWithdrawal[] = [];
  if (whole !== 'none') {
    const gone = await client.query<{ day: string | null; gone: number; left: number }>(sql.withdrawRest, [
      load.loadId,
      exchange,
      days,
    ]);
    for (const { day, gone: rows, left } of gone.rows) {
      withdrawals.push({
        table: table.name,
        day,
        gone: rows,
        left,
        most: rows + left,
        refused: null,
        rows: [],
      });
    }
    await client.query(sql.storeDayRows, [exchange, days]);
    withdrawals.push(
      ...(await replaceRefusals(tx, { table: table.name, exchange, ofDays: onDays(days) }, [
        ...refusals.values(),
      ])),
    );
  }
  if (load.fresh === true) for (const text of sql.storePast) await client.query(text, [exchange, days]);
  return { ...countsOf(stored.rows[0]), withdrawn: withdrawnIn(withdrawals), withdrawals, checkedDays: [] };
}

async function readTable(
  tx: Transaction,
  { table }: Pick<TableLoad, 'table'>,
  responseId: number,
  readKept: ReadKept,
): Promise<TableAnswer | null> {
  const kept = await readKeptAnswer(tx, responseId);
  if (kept === null) return null;
  try {
    const read = await readKept(kept);
    if (read === null) return null;
    return {
      rows: read.batches.find((batch) => batch.table === table)?.rows ?? [],
      fullSet: read.fullSets.find((set) => set.table === table),
      preserved: read.preserved,
    };
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    // As it is read today, it cannot be; its own window will say why when it is replayed.
    return null;
  }
}

/**
 * Merges of a late answer what is certain, where the others are kept no longer: rows that are new, unless a later
 * whole answer does not list them, and values that were saved later. Nothing is withdrawn.
 */
async function mergeCertain(client: PoolClient, load: TableLoad, scope: Scope): Promise<MergedTable> {
  const { table, exchange, fullSet, fetchedAt } = load;
  const { keepCertain } = foldSql(table, scope.whole);
  const certain = await client.query<Record<string, string>>(keepCertain, [
    exchange,
    scope.operations,
    fetchedAt.toISOString(),
    fullSet === undefined ? null : daysOf(fullSet),
  ]);
  const left = { ...countsOf(certain.rows[0]), unlisted: Number(certain.rows[0]?.unlisted) };
  const { preserved: _, ...answer } = load;
  const merged = await applyStaged(client, table, { ...answer, fullSet: undefined }, load, mergeSql(table));
  const undecided = left.stale + left.unlisted;
  return {
    ...merged,
    unchanged: merged.unchanged + left.unchanged,
    stale: merged.stale + left.stale,
    duplicate: merged.duplicate + left.duplicate,
    folded: false,
    undecided:
      undecided === 0
        ? null
        : `came after an answer that was fetched later, and not all answers are kept: ${left.stale} ${left.stale === 1 ? 'row' : 'rows'} of market.${table.name} that it has other values for and ${left.unlisted} that it does not list were left as they are`,
  };
}
