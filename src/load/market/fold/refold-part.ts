import { type DayRange, eachDay } from '../../../core/days.ts';
import { BEFORE_ALL, type Place } from '../../../core/place.ts';
import type { RecordCounts } from '../../../core/record-counts.ts';
import { dataSetNamed, listedInFull, namesFilling } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import type { Database } from '../../database/database.ts';
import { databaseError } from '../../database/database-errors.ts';
import { type Transaction, transaction } from '../../database/transaction.ts';
import {
  type AnswerSaid,
  canResolveRejects,
  factOf,
  readSaid,
  replaceFact,
} from '../../state/answers/answer-facts.ts';
import { layoutValues, noteLayout } from '../../state/answers/layouts.ts';
import { type Pruned, prunedUpTo } from '../../state/answers/pruned.ts';
import { type AnswerOfPart, answersOf, checkNoneLost } from '../../state/answers/to-fold.ts';
import { sumCoverage } from '../../state/coverage/sum-of-facts.ts';
import { beginLoad, insertLoad, insertLoads, nextLoadId, widenChanged } from '../../state/loads/loads.ts';
import { locksOfTable } from '../../state/loads/locks.ts';
import { notePastBegins } from '../../state/loads/versions.ts';
import type { CoverageEntry } from '../../state/registers.ts';
import { lockRejects, rewriteRejects } from '../../state/rejects.ts';
import { insertCopied } from '../../state/windows/plan.ts';
import { endingWindow, noteUnsettled } from '../../state/windows/windows.ts';
import { NO_DAY, writeWithdrawals } from '../../state/withdrawals.ts';
import {
  copyNewDays,
  daysOfRows,
  ensurePartitions,
  ensureStage,
  setHintBits,
  type TableAnswer,
} from '../merge/merge.ts';
import { rereadNames } from '../observed-aliases/observed-aliases.ts';
import { partOf, type ReadAgain, type RefoldedTable, refoldTable } from './fold.ts';

// Refolding: of some days (or instruments) of tables, all kept answers are read again with the code of today and folded in
// their order. What comes out differently is written: rows, what the answers said and did, rejects and coverage.

/** An answer as the code of today reads it. */
export interface AnswerReading extends Awaited<ReturnType<ReadAgain>>, AnswerSaid {}

/** A window of a replay: the part of some tables that it folds anew. */
export interface Part {
  readonly windowId: number;
  readonly runId: number;
  readonly tables: readonly TableDefinition[];
  readonly exchange: string;
  /** The days, if answers list days of these tables in full. */
  readonly days: DayRange | null;
  /** Answers about these instruments only, in upper case; null: about any. */
  readonly instruments: readonly string[] | null;
  /** Is the history replaced by the one that the answers make in their order? If not, what differs becomes a new revision. */
  readonly history: boolean;
}

/** A part of more days locks their months: it is folded within seconds, and has other locks besides. */
const MOST_LOCKS = 10;

/** How kept answers are read and judged. */
interface Judging {
  /** Null if the answer is not kept any more. */
  readonly read: (answerId: number) => Promise<AnswerReading | null>;
  /** Largest share of the rows present that may be withdrawn, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
}

/** What is asked of answers to be about a part. */
const scopeOfPart = ({ tables, exchange, days, instruments }: Part) => ({
  operations: namesFilling(tables),
  exchange,
  days,
  instruments,
});

/**
 * Folds a part anew in one transaction: readers see all of it as before or as after, loads of its days come before or
 * after it, and where nothing differs nothing is written but the end of the window.
 *
 * @returns what became of the rows, or null if the window had ended already; then nothing was written.
 * @throws PipelineError `unreadable` if an answer cannot be read any more; of kind `database`, also if one is neither kept
 *   nor pruned, or `database_away`.
 */
export async function refoldPart(
  database: Database,
  part: Part,
  judging: Judging,
): Promise<RecordCounts | null> {
  try {
    // All answers of a part that cannot be divided might be too many to be held at once.
    const isSmall = part.days !== null || part.instruments !== null;
    const read = isSmall ? readOnce(judging.read) : judging.read;
    // Before the transaction, so that no load waits while answers are read.
    const listed = isSmall ? await answersOf(database.drizzle, scopeOfPart(part)) : [];
    for (const { answerId } of listed) {
      for (const { table, rows } of (await read(answerId))?.batches ?? [])
        if (part.tables.includes(table)) await ensurePartitions(database, table, rows);
    }
    const counts = await transaction(database, (tx) => refold(tx, part, { ...judging, read }));
    const written = (counts?.inserted ?? 0) + (counts?.updated ?? 0);
    for (const table of part.tables)
      if (part.days !== null)
        await setHintBits(database, table, {
          exchange: part.exchange,
          days: eachDay(part.days.from, part.days.to),
          written,
        });
    return counts;
  } catch (error) {
    throw databaseError(error);
  }
}

/** Remembers what was read, since the answers of a part are read for each of its tables. */
function readOnce(read: Judging['read']): Judging['read'] {
  const readings = new Map<number, Promise<AnswerReading | null>>();
  return (answerId) => {
    const reading = readings.get(answerId) ?? read(answerId);
    readings.set(answerId, reading);
    return reading;
  };
}

/** An answer that is folded, and the load whose number its rows carry. */
interface ReadAnswer extends Omit<AnswerOfPart, 'load'> {
  readonly said: AnswerSaid;
  readonly load: { readonly id: number; readonly runId: number };
}

async function refold(tx: Transaction, part: Part, judging: Judging): Promise<RecordCounts | null> {
  const { windowId, runId, tables, exchange, days, history } = part;
  const parts = days === null ? null : eachDay(days.from, days.to);
  const rows = tables.flatMap(({ name }) => locksOfTable(name, exchange, parts, { most: MOST_LOCKS }));
  const begun = await beginLoad(tx, windowId, rows);
  if (begun === null) return null;
  const { loadId } = begun;
  for (const table of tables) await ensureStage(tx.client, table);
  const scope = scopeOfPart(part);
  await checkNoneLost(tx, scope);
  const pruned = await prunedUpTo(tx, scope);
  const answers: ReadAnswer[] = [];
  const loaded: { readonly loadId: number; readonly answerId: number }[] = [];
  // Those that were never loaded are pruned without the locks of tables.
  for (const { load, ...one } of await answersOf(tx, scope, { isLocked: true })) {
    const { answerId } = one;
    const read = await judging.read(answerId);
    if (read === null) throw new Error(`answer ${answerId} was pruned while it was locked`);
    const { outcome, coverage, rejects, doubts, doubtsWithoutReject, sent } = read;
    const isNew = load === null && outcome.state !== 'failed';
    const own = { id: isNew ? await nextLoadId(tx) : loadId, runId };
    if (isNew) loaded.push({ answerId, loadId: own.id });
    const said = { outcome, coverage, rejects, doubts, doubtsWithoutReject, sent };
    answers.push({ ...one, said, load: load ?? own });
  }
  const folding = { ...part, loadId, answers, pruned };
  const folded: FoldedTable[] = [];
  for (const table of tables) folded.push(await refoldPartOfTable(tx, { ...folding, table }, judging));
  // What answers say that list days of a table in full is written with these days.
  const own = answers.filter(
    ({ operation }) =>
      days !== null || !dataSetNamed(operation).shapes.some(({ fullSet }) => fullSet === 'days'),
  );
  const finished = own.filter((one) => isFinished(part, one));
  const total = (name: 'inserted' | 'updated' | 'unchanged' | 'withdrawn') =>
    folded.reduce((sum, one) => sum + one[name], 0);
  const rejected = finished.reduce((sum, { said }) => sum + said.rejects.length, 0);
  const [inserted, updated, unchanged] = [total('inserted'), total('updated'), total('unchanged')];
  const counts = {
    fetched: inserted + updated + unchanged + rejected,
    inserted,
    updated,
    unchanged,
    stale: 0,
    duplicate: 0,
    rejected,
    withdrawn: total('withdrawn'),
  };
  for (const { table, folded: decided, withdrawals } of folded) {
    const by = { loadId, windowId, runId, operation: namesFilling([table])[0] ?? '', exchange };
    if (decided !== null) await writeWithdrawals(tx, by, decided, withdrawals);
  }
  await writeFacts(tx, { ...part, operations: scope.operations }, own, folded);
  const changed = folded.filter((one) => one.changed > 0);
  if (history && changed.some(({ table }) => table.names.length > 0)) await rereadNames(tx, exchange);
  await insertLoads(tx, windowId, loaded);
  const ending = endingWindow(tx, windowId, {
    state: counts.fetched === 0 ? 'empty' : 'loaded',
    error: null,
    counts,
    bytes: 0,
    warnings: [],
    suspicious: null,
    unsettled: null,
  });
  if (changed.length === 0) {
    await ending;
    return counts;
  }
  const written = changed.map(({ table }) => ({
    table: table.name,
    from: days?.from ?? '-infinity',
    to: days?.to ?? 'infinity',
  }));
  const made = { loadId, windowId, place: BEFORE_ALL, fetchedAt: new Date(0), written, namesChanged: true };
  await insertLoad(tx, made, ending);
  if (history) {
    const names = changed.map(({ table }) => table.name);
    await notePastBegins(tx, { tables: names, exchange, loadId });
    await widenChanged(
      tx,
      answers.map(({ load, firstDay, lastDay }) => ({
        loadId: load.id,
        from: days === null ? '-infinity' : ([firstDay, days.from].sort()[1] ?? days.from),
        to: days === null ? 'infinity' : ([lastDay, days.to].sort()[0] ?? days.to),
      })),
    );
  }
  return counts;
}

/** Is this part the last one in which the answer is folded? Then what it said, and its rejects, are written with it. */
function isFinished({ days, instruments }: Part, answer: ReadAnswer): boolean {
  if (days !== null) return answer.lastDay <= days.to;
  if (instruments === null) return true;
  const names = answer.instruments.map((one) => one.toUpperCase()).sort();
  return instruments.includes(names.at(-1) ?? '');
}

interface FoldedTable extends RefoldedTable {
  readonly table: TableDefinition;
}

interface PartOfTable extends Omit<Part, 'tables'> {
  readonly table: TableDefinition;
  readonly loadId: number;
  readonly answers: readonly ReadAnswer[];
  readonly pruned: Pruned | null;
}

async function refoldPartOfTable(tx: Transaction, part: PartOfTable, judging: Judging): Promise<FoldedTable> {
  const { table, days, pruned } = part;
  const filling = namesFilling([table]);
  const answers = part.answers.filter(({ operation }) => filling.includes(operation));
  const hasDays = days !== null && listedInFull(table) === 'days';
  const asked = hasDays ? daysAsked(days, answers) : null;
  const copied =
    asked === null || pruned !== null ? NONE : await copySingles(tx, { ...part, answers }, asked, judging);
  const left = asked?.filter((day) => !copied.days.has(day)) ?? null;
  const folded = await refoldTable(tx, {
    ...part,
    maxWithdrawShare: judging.maxWithdrawShare,
    days: left,
    answers,
    readAnswer: (answerId) => readTable(judging, answerId, table),
  });
  return {
    ...folded,
    table,
    inserted: folded.inserted + copied.rows,
    changed: folded.changed + copied.rows,
    folded: folded.folded && { ...folded.folded, days: asked },
  };
}

/** The part of an answer that is about a table. */
async function readTable({ read }: Judging, answerId: number, table: TableDefinition): Promise<TableAnswer> {
  const reading = await read(answerId);
  if (reading === null) throw new Error(`answer ${answerId} was pruned while its day was locked`);
  return partOf(reading, table);
}

const isAbout = ({ firstDay, lastDay }: ReadAnswer, day: string) => firstDay <= day && day <= lastDay;

/** The days of a range that answers are about. */
const daysAsked = ({ from, to }: DayRange, answers: readonly ReadAnswer[]) =>
  eachDay(from, to).filter((day) => answers.some((one) => isAbout(one, day)));

const NONE: { readonly rows: number; readonly days: ReadonlySet<string> } = { rows: 0, days: new Set() };

/** Copies the rows of days that have none yet, and about which there is only one answer. @returns how many, of which days. */
async function copySingles(
  { client }: Transaction,
  { table, exchange, runId, loadId, history, answers }: PartOfTable,
  asked: readonly string[],
  judging: Judging,
): Promise<typeof NONE> {
  const single = new Set(asked.filter((day) => answers.filter((one) => isAbout(one, day)).length === 1));
  const copied = { rows: 0, days: new Set<string>() };
  for (const answer of answers) {
    const days = asked.filter((day) => isAbout(answer, day));
    if (!days.every((day) => single.has(day))) continue;
    const { rows, fullSet } = await readTable(judging, answer.answerId, table);
    if (rows.length === 0 || [...daysOfRows(table, rows)].some((day) => !days.includes(day))) continue;
    const by = history ? { runId: answer.load.runId, loadId: answer.load.id } : { runId, loadId };
    const added = await copyNewDays(client, { table, rows, fullSet, exchange, ...by }, days);
    // If one has rows already, most have.
    if (added === null) break;
    copied.rows += added.inserted;
    for (const day of days) copied.days.add(day);
  }
  return copied;
}

/** Writes what answers that were read again say and did, their rejects, and the coverage of their questions. */
async function writeFacts(
  tx: Transaction,
  part: Part & { readonly operations: readonly string[] },
  answers: readonly ReadAnswer[],
  folded: readonly FoldedTable[],
): Promise<void> {
  const { runId, exchange, operations } = part;
  const copied = answers.flatMap((one) => (one.windowId === 0 ? [one.answerId] : []));
  const windowsOf = await insertCopied(tx, runId, copied);
  const ignoredBy = (place: Place) => folded.flatMap(({ ignored }) => ignored?.get(place) ?? []);
  await replaceFacts(tx, part, answers, { windowsOf, ignoredBy });
  await noteLayouts(tx, answers);
  const finished = answers.filter((one) => isFinished(part, one) && ignoredBy(one.place).length === 0);
  // Of several answers of a window, the last one.
  const unsettled = new Map(
    finished.map((one) => [one.windowId, one.said.doubtsWithoutReject.join('; ') || null]),
  );
  await noteUnsettled(
    tx,
    [...unsettled].map(([id, text]) => ({ windowId: id, unsettled: text })),
  );
  // Parts that are refolded beside this one may have answers, and so rejects and questions, in common with it.
  await lockRejects(tx, { operations, exchange }, { shared: false });
  const readAgain = answers.map((one) => {
    const { answerId, said } = one;
    const by = windowsOf.get(answerId);
    return {
      ...one,
      ...(by !== undefined && { windowId: by, runId }),
      asked: one,
      rejects: said.rejects,
      resolves: whatResolves(part, one, ignoredBy(one.place)),
      within: isWithin(part, one) ? null : part.days,
    };
  });
  await rewriteRejects(tx, { operations, exchange }, readAgain);
  const asked = [
    ...answers.flatMap(({ from, to, said }) => [from, to, ...said.coverage.map(({ day }) => day)]),
    ...(part.days === null ? [] : [part.days.from, part.days.to]),
  ].sort();
  const [from, to] = [asked[0], asked.at(-1)];
  if (from !== undefined && to !== undefined)
    await sumCoverage(tx, { operations, exchange, days: { from, to } });
}

/** Can the answer resolve rejects? Null if not all of it is read again yet, or if a later one decides what follows from it. */
function whatResolves(part: Part, answer: ReadAnswer, ignored: readonly string[]): boolean | null {
  if (ignored.length > 0) return null;
  return canResolveRejects(answer.said) || (isFinished(part, answer) ? false : null);
}

/** Notes the fields of the answers of which they are not known, in one order, so that two refolds cannot deadlock. */
async function noteLayouts(tx: Transaction, answers: readonly ReadAnswer[]): Promise<void> {
  const unknown = answers.flatMap(({ isObserved, place, operation, said: { sent } }) =>
    isObserved || sent === undefined
      ? []
      : [{ place, sent, key: `${operation} ${layoutValues(sent).layout}` }],
  );
  unknown.sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
  for (const { place, sent } of unknown) await noteLayout(tx, place, sent);
}

/** Are all days of an answer in a part? If not, the other parts say what there is to say of the other days. */
const isWithin = ({ days }: Part, { firstDay, lastDay }: ReadAnswer): boolean =>
  days === null || (days.from <= firstDay && lastDay <= days.to);

/** Replaces what answers said of the days of a part. */
async function replaceFacts(
  tx: Transaction,
  part: Part,
  answers: readonly ReadAnswer[],
  {
    windowsOf,
    ignoredBy,
  }: {
    readonly windowsOf: ReadonlyMap<number, number>;
    readonly ignoredBy: (place: Place) => readonly string[];
  },
): Promise<void> {
  const { windowId, days } = part;
  const partly = answers.filter((one) => !isWithin(part, one) || ignoredBy(one.place).length > 0);
  const stored = await readSaid(
    tx,
    partly.map(({ answerId }) => answerId),
  );
  const isOutside = (day: string) => days !== null && (day < days.from || day > days.to);
  for (const one of answers) {
    const { answerId, place, to, instruments, said } = one;
    const ignored = ignoredBy(place);
    const isSaid = ({ day }: CoverageEntry) => !ignored.includes(day) && !ignored.includes(NO_DAY);
    const isAll = isWithin(part, one);
    const coverage = said.coverage.filter((entry) => isSaid(entry) && (isAll || !isOutside(entry.day)));
    const others = (stored.get(answerId) ?? []).filter((entry) => isOutside(entry.day) || !isSaid(entry));
    const told = [...others, ...coverage].sort((a, b) => (a.day < b.day ? -1 : Number(a.day > b.day)));
    const fact = factOf({ coverage: told, doubted: said.doubts.length > 0 }, { to, instruments });
    const resolvesRejects = isFinished(part, one) ? canResolveRejects(said) : null;
    await replaceFact(tx, { answerId, windowId: windowsOf.get(answerId) ?? windowId, fact, resolvesRejects });
  }
}
