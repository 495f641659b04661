import { type DayRange, eachDay } from '../../../core/days.ts';
import { BEFORE_ALL, type Position } from '../../../core/position.ts';
import type { RecordCounts } from '../../../core/record-counts.ts';
import { dataSetNamed, listedInFull, namesFilling } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import type { Database } from '../../database/database.ts';
import { databaseError } from '../../database/database-errors.ts';
import { type Transaction, transaction } from '../../database/transaction.ts';
import { sumCoverage } from '../../state/coverage/sum-of-facts.ts';
import { beginLoad, insertLoad, insertLoads, nextLoadId, widenChanged } from '../../state/loads/loads.ts';
import { locksOfTable } from '../../state/loads/locks.ts';
import { notePastBegins } from '../../state/loads/versions.ts';
import type { CoverageEntry } from '../../state/registers.ts';
import { lockRejects, rewriteRejects } from '../../state/rejects.ts';
import { type Pruned, prunedUpTo } from '../../state/responses/pruned.ts';
import {
  canResolveRejects,
  factOf,
  type ResponseSaid,
  readSaid,
  replaceFact,
} from '../../state/responses/response-facts.ts';
import { checkNoneLost, type ResponseOfPart, responsesOf } from '../../state/responses/to-fold.ts';
import { insertCopied } from '../../state/windows/plan.ts';
import { endingWindow, noteUnsettled } from '../../state/windows/windows.ts';
import { NO_DAY, writeWithdrawals } from '../../state/withdrawals.ts';
import { copyNewDays, daysOfRows, ensurePartitions, ensureStage, setHintBits } from '../merge/merge.ts';
import {
  keptReader,
  type ReadAgain,
  type ReadKept,
  type RefoldedTable,
  readTable,
  refoldTable,
} from './fold.ts';

// Refolding: of some days (or instruments) of tables, all kept responses are read again with the code of today and
// folded in their order. What comes out differently is written: rows, what the responses said and did, rejects and
// coverage.

/** A window of a replay: the part of some tables that it folds anew. */
interface Part {
  readonly windowId: number;
  readonly runId: number;
  readonly tables: readonly TableDefinition[];
  readonly exchange: string;
  /** The days, if responses list days of these tables in full. */
  readonly days: DayRange | null;
  /** Responses about these instruments only, in upper case; null: about any. */
  readonly instruments: readonly string[] | null;
  /**
   * True if the history is replaced by the one that the responses make in their order. If not, what differs becomes a
   * new revision.
   */
  readonly history: boolean;
}

/** A part of more days locks their months: it is folded within seconds, and has other locks besides. */
const MOST_LOCKS = 10;

/** How kept responses are read and judged. */
interface Judging {
  readonly read: ReadKept;
  /** Largest share of the rows present that may be withdrawn, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
}

/** The condition that responses are about a part. */
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
 * @throws PipelineError `unreadable` if a response cannot be read any more; of kind `database`, also if one is neither
 *   kept nor pruned, or `database_unreachable`.
 */
export async function refoldPart(
  database: Database,
  part: Part,
  { readAgain, maxWithdrawShare }: Pick<Judging, 'maxWithdrawShare'> & { readonly readAgain: ReadAgain },
): Promise<RecordCounts | null> {
  const kept = keptReader(database.drizzle, readAgain);
  try {
    // All responses of a part that cannot be divided might be too many to be held at once.
    const isSmall = part.days !== null || part.instruments !== null;
    const read = isSmall ? readOnce(kept) : kept;
    // Before the transaction, so that no load waits while responses are read.
    const listed = isSmall ? await responsesOf(database.drizzle, scopeOfPart(part)) : [];
    for (const { responseId } of listed) {
      for (const { table, rows } of (await read(responseId))?.batches ?? [])
        if (part.tables.includes(table)) await ensurePartitions(database, table, rows);
    }
    const counts = await transaction(database, (tx) => refold(tx, part, { read, maxWithdrawShare }));
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

/** Remembers what was read, since the responses of a part are read for each of its tables. */
function readOnce(read: ReadKept): ReadKept {
  const readings = new Map<number, ReturnType<ReadKept>>();
  return (responseId) => {
    const reading = readings.get(responseId) ?? read(responseId);
    readings.set(responseId, reading);
    return reading;
  };
}

/** A response that is folded, and the load whose number its rows carry. */
interface ReadResponse extends Omit<ResponseOfPart, 'load'> {
  readonly said: ResponseSaid;
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
  const responses: ReadResponse[] = [];
  const loaded: { readonly loadId: number; readonly responseId: number }[] = [];
  // Those that were never loaded are pruned without the locks of tables.
  for (const { load, ...one } of await responsesOf(tx, scope, { isLocked: true })) {
    const { responseId } = one;
    const read = await judging.read(responseId);
    if (read === null) throw new Error(`response ${responseId} was pruned while it was locked`);
    const { outcome, coverage, rejects, suspicions, suspicionsWithoutReject } = read;
    const isNew = load === null && outcome.state !== 'failed';
    const own = { id: isNew ? await nextLoadId(tx) : loadId, runId };
    if (isNew) loaded.push({ responseId, loadId: own.id });
    const said = { outcome, coverage, rejects, suspicions, suspicionsWithoutReject };
    responses.push({ ...one, said, load: load ?? own });
  }
  const folding = { ...part, loadId, responses, pruned };
  const folded: FoldedTable[] = [];
  for (const table of tables) folded.push(await refoldPartOfTable(tx, { ...folding, table }, judging));
  // What responses say that list days of a table in full is written with these days.
  const own = responses.filter(
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
  const made = {
    loadId,
    windowId,
    position: BEFORE_ALL,
    fetchedAt: new Date(0),
    written,
  };
  await insertLoad(tx, made, ending);
  if (history) {
    const names = changed.map(({ table }) => table.name);
    await notePastBegins(tx, { tables: names, exchange, loadId });
    await widenChanged(
      tx,
      responses.map(({ load, firstDay, lastDay }) => ({
        loadId: load.id,
        from: days === null ? '-infinity' : ([firstDay, days.from].sort()[1] ?? days.from),
        to: days === null ? 'infinity' : ([lastDay, days.to].sort()[0] ?? days.to),
      })),
    );
  }
  return counts;
}

/**
 * True if this part is the last one in which the response is folded. Then what it said, and its rejects, are written
 * with it.
 */
function isFinished({ days, instruments }: Part, response: ReadResponse): boolean {
  if (days !== null) return response.lastDay <= days.to;
  if (instruments === null) return true;
  const names = response.instruments.map((one) => one.toUpperCase()).sort();
  return instruments.includes(names.at(-1) ?? '');
}

interface FoldedTable extends RefoldedTable {
  readonly table: TableDefinition;
}

interface PartOfTable extends Omit<Part, 'tables'> {
  readonly table: TableDefinition;
  readonly loadId: number;
  readonly responses: readonly ReadResponse[];
  readonly pruned: Pruned | null;
}

async function refoldPartOfTable(tx: Transaction, part: PartOfTable, judging: Judging): Promise<FoldedTable> {
  const { table, days, pruned } = part;
  const filling = namesFilling([table]);
  const responses = part.responses.filter(({ operation }) => filling.includes(operation));
  const hasDays = days !== null && listedInFull(table) === 'days';
  const requested = hasDays ? daysRequested(days, responses) : null;
  const copied =
    requested === null || pruned !== null
      ? NONE
      : await copySingles(tx, { ...part, responses }, requested, judging);
  const left = requested?.filter((day) => !copied.days.has(day)) ?? null;
  const folded = await refoldTable(tx, { ...part, ...judging, days: left, responses });
  return {
    ...folded,
    table,
    inserted: folded.inserted + copied.rows,
    changed: folded.changed + copied.rows,
    folded: folded.folded && { ...folded.folded, days: requested },
  };
}

const isAbout = ({ firstDay, lastDay }: ReadResponse, day: string) => firstDay <= day && day <= lastDay;

/** The days of a range that responses are about. */
const daysRequested = ({ from, to }: DayRange, responses: readonly ReadResponse[]) =>
  eachDay(from, to).filter((day) => responses.some((one) => isAbout(one, day)));

const NONE: { readonly rows: number; readonly days: ReadonlySet<string> } = { rows: 0, days: new Set() };

/**
 * Copies the rows of days that have none yet, and about which there is only one response. @returns how many, of which
 * days.
 */
async function copySingles(
  { client }: Transaction,
  { table, exchange, runId, loadId, history, responses }: PartOfTable,
  requested: readonly string[],
  judging: Judging,
): Promise<typeof NONE> {
  const single = new Set(
    requested.filter((day) => responses.filter((one) => isAbout(one, day)).length === 1),
  );
  const copied = { rows: 0, days: new Set<string>() };
  for (const response of responses) {
    const days = requested.filter((day) => isAbout(response, day));
    if (!days.every((day) => single.has(day))) continue;
    const { rows, fullSet } = await readTable(judging.read, response.responseId, table);
    if (rows.length === 0 || [...daysOfRows(table, rows)].some((day) => !days.includes(day))) continue;
    const by = history ? { runId: response.load.runId, loadId: response.load.id } : { runId, loadId };
    const added = await copyNewDays(client, { table, rows, fullSet, exchange, ...by }, days);
    // If one has rows already, most have.
    if (added === null) break;
    copied.rows += added.inserted;
    for (const day of days) copied.days.add(day);
  }
  return copied;
}

/** Writes what responses that were read again say and did, their rejects, and the coverage of their entries. */
async function writeFacts(
  tx: Transaction,
  part: Part & { readonly operations: readonly string[] },
  responses: readonly ReadResponse[],
  folded: readonly FoldedTable[],
): Promise<void> {
  const { runId, exchange, operations } = part;
  const copied = responses.flatMap((one) => (one.windowId === 0 ? [one.responseId] : []));
  const windowsOf = await insertCopied(tx, runId, copied);
  const ignoredBy = (position: Position) => folded.flatMap(({ ignored }) => ignored?.get(position) ?? []);
  await replaceFacts(tx, part, responses, { windowsOf, ignoredBy });
  const finished = responses.filter((one) => isFinished(part, one) && ignoredBy(one.position).length === 0);
  // Of several responses of a window, the last one.
  const unsettled = new Map(
    finished.map((one) => [one.windowId, one.said.suspicionsWithoutReject.join('; ') || null]),
  );
  await noteUnsettled(
    tx,
    [...unsettled].map(([id, text]) => ({ windowId: id, unsettled: text })),
  );
  // Parts that are refolded beside this one may have responses, and so rejects and entries, in common with it.
  await lockRejects(tx, { operations, exchange }, { shared: false });
  const readAgain = responses.map((one) => {
    const { responseId, said } = one;
    const by = windowsOf.get(responseId);
    return {
      ...one,
      ...(by !== undefined && { windowId: by, runId }),
      requested: one,
      rejects: said.rejects,
      resolves: whatResolves(part, one, ignoredBy(one.position)),
      within: isWithin(part, one) ? null : part.days,
    };
  });
  await rewriteRejects(tx, { operations, exchange }, readAgain);
  const requested = [
    ...responses.flatMap(({ from, to, said }) => [from, to, ...said.coverage.map(({ day }) => day)]),
    ...(part.days === null ? [] : [part.days.from, part.days.to]),
  ].sort();
  const [from, to] = [requested[0], requested.at(-1)];
  if (from !== undefined && to !== undefined)
    await sumCoverage(tx, { operations, exchange, days: { from, to } });
}

/**
 * True if the response can resolve rejects. Null if not all of it is read again yet, or if a later one decides what
 * follows from it.
 */
function whatResolves(part: Part, response: ReadResponse, ignored: readonly string[]): boolean | null {
  if (ignored.length > 0) return null;
  return canResolveRejects(response.said) || (isFinished(part, response) ? false : null);
}

/** True if all days of a response are in a part. If not, the other parts say what there is to say of the other days. */
const isWithin = ({ days }: Part, { firstDay, lastDay }: ReadResponse): boolean =>
  days === null || (days.from <= firstDay && lastDay <= days.to);

/** Replaces what responses said of the days of a part. */
async function replaceFacts(
  tx: Transaction,
  part: Part,
  responses: readonly ReadResponse[],
  {
    windowsOf,
    ignoredBy,
  }: {
    readonly windowsOf: ReadonlyMap<number, number>;
    readonly ignoredBy: (position: Position) => readonly string[];
  },
): Promise<void> {
  const { windowId, days } = part;
  const partly = responses.filter((one) => !isWithin(part, one) || ignoredBy(one.position).length > 0);
  const stored = await readSaid(
    tx,
    partly.map(({ responseId }) => responseId),
  );
  const isOutside = (day: string) => days !== null && (day < days.from || day > days.to);
  for (const one of responses) {
    const { responseId, position, to, instruments, said } = one;
    const ignored = ignoredBy(position);
    const isSaid = ({ day }: CoverageEntry) => !ignored.includes(day) && !ignored.includes(NO_DAY);
    const isAll = isWithin(part, one);
    const coverage = said.coverage.filter((entry) => isSaid(entry) && (isAll || !isOutside(entry.day)));
    const others = (stored.get(responseId) ?? []).filter((entry) => isOutside(entry.day) || !isSaid(entry));
    const reported = [...others, ...coverage].sort((a, b) => (a.day < b.day ? -1 : Number(a.day > b.day)));
    const fact = factOf({ coverage: reported, suspicious: said.suspicions.length > 0 }, { to, instruments });
    const resolvesRejects = isFinished(part, one) ? canResolveRejects(said) : null;
    await replaceFact(tx, {
      responseId,
      windowId: windowsOf.get(responseId) ?? windowId,
      fact,
      resolvesRejects,
    });
  }
}
