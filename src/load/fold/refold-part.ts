import { eachDay } from '../../core/days.ts';
import { BEFORE_ALL } from '../../core/position.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { dataSetNamed, namesFilling } from '../../operations/registry.ts';
import type { Database } from '../../postgres/database.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import { type Transaction, transaction } from '../../postgres/transaction.ts';
import { sumCoverage } from '../../state/coverage/sum-of-facts.ts';
import { beginLoad, insertLoad, insertLoads, nextLoadId } from '../../state/loads/loads.ts';
import { locksOfTable } from '../../state/loads/locks.ts';
import { lockRejects, rewriteRejects } from '../../state/rejects.ts';
import {
  buildFact,
  canResolveRejects,
  type ResponseSaid,
  replaceFact,
} from '../../state/responses/response-facts.ts';
import { checkNoneLost, type ResponseOfPart, readResponsesToFold } from '../../state/responses/to-fold.ts';
import { insertCopied } from '../../state/windows/plan.ts';
import { listReplayedParts, type ReplayedRange } from '../../state/windows/read-windows.ts';
import { endingWindow, noteUnsettled } from '../../state/windows/windows.ts';
import { writeWithdrawals } from '../../state/withdrawals.ts';
import { ensurePartitions, setHintBits } from '../merge/merge.ts';
import { fillPart, isEmpty, keptReader, type ReadAgain, type Settled, settlePart } from './fold.ts';
import { foldPart, type Judging, type Part, partOfTable, scopeOfPart } from './part.ts';

// A replay reads kept responses again with the code of today, part by part: days or instruments of tables. It folds the
// rows of the part, and then writes what the responses that end in the part say, each as a whole: facts, rejects, coverage.
// What comes out differently is written.

/** A window of a replay. */
interface ReplayedPart extends Part {
  readonly windowId: number;
  readonly runId: number;
}

/**
 * Replays a part in one transaction: readers see all of it as before or as after, loads of its days come before or
 * after it, and where nothing differs nothing is written but the end of the window.
 *
 * @returns what became of the rows, or null if the window had ended already; then nothing was written.
 * @throws PipelineError `unreadable` if a response cannot be read any more; of kind `database`, also if one is not kept,
 *   or `database_unreachable`.
 */
export async function refoldPart(
  database: Database,
  part: ReplayedPart,
  { readAgain, maxWithdrawShare }: { readonly readAgain: ReadAgain; readonly maxWithdrawShare: number },
): Promise<RecordCounts | null> {
  try {
    const days = part.days === null ? [] : eachDay(part.days.from, part.days.to);
    for (const table of part.tables) await ensurePartitions(database, table, days);
    const counts = await transaction(database, (tx) =>
      refold(tx, part, { read: keptReader(tx, readAgain), maxWithdrawShare }),
    );
    const written = (counts?.inserted ?? 0) + (counts?.updated ?? 0);
    for (const table of part.tables)
      if (part.days !== null) await setHintBits(database, table, { exchange: part.exchange, days, written });
    return counts;
  } catch (error) {
    throw databaseError(error);
  }
}

async function refold(tx: Transaction, part: ReplayedPart, judging: Judging): Promise<RecordCounts | null> {
  const { windowId, tables, exchange, days } = part;
  const parts = days === null ? null : eachDay(days.from, days.to);
  const rows = tables.flatMap(({ name }) => locksOfTable(name, exchange, parts));
  const begun = await beginLoad(tx, windowId, rows);
  if (begun === null) return null;
  const scope = scopeOfPart(part);
  await checkNoneLost(tx, scope);
  const locked = await readResponsesToFold(tx, scope, { isLocked: true });
  const emptyTables = new Set<TableDefinition>();
  for (const table of tables) if (await isEmpty(tx, partOfTable(part, table, locked))) emptyTables.add(table);
  const load = { loadId: begun.loadId, runId: part.runId };
  const numbered = await numberLoads(tx, part.runId, locked, emptyTables.size > 0);
  const { copies, responses } = await foldPart(tx, part, numbered, judging);
  const folded: FoldedTable[] = [];
  for (const copy of copies) {
    const { table } = copy;
    folded.push({
      table,
      ...(emptyTables.has(table) ? await fillPart(tx, copy) : await settlePart(tx, copy, load)),
    });
  }
  const replayed = await listReplayedParts(tx, windowId);
  const ended = responses.filter((response) => endsIn(part, response) && isWithin(replayed, response));
  // Last, because parts that are replayed beside this one wait for its locks.
  await rewriteFacts(tx, part, ended);
  for (const { table, decided, withdrawals } of folded) {
    const by = { ...load, windowId, operation: namesFilling([table])[0] ?? '', exchange };
    if (decided !== null) await writeWithdrawals(tx, by, decided, withdrawals);
  }
  await sumPartCoverage(tx, part, ended);
  await endPart(tx, { ...part, ...load, responses, ended }, folded);
  return countRecords(folded, ended);
}

/** Inserts the loads of a part and ends its window: these are the last statements, as `insertLoad` requires. */
async function endPart(
  tx: Transaction,
  {
    windowId,
    days,
    loadId,
    responses,
    ended,
  }: ReplayedPart & {
    readonly loadId: number;
    readonly responses: readonly ResponseReadAgain[];
    readonly ended: readonly ResponseReadAgain[];
  },
  folded: readonly FoldedTable[],
): Promise<void> {
  const counts = countRecords(folded, ended);
  const writtenBy = (isMade: (table: FoldedTable) => boolean) =>
    folded.filter(isMade).map(({ table }) => ({
      table: table.name,
      from: days?.from ?? '-infinity',
      to: days?.to ?? 'infinity',
    }));
  const own = responses.flatMap(({ responseId, load, isFirst, reading }) => {
    const written = writtenBy(({ loads }) => loads.includes(load.loadId));
    return (isFirst && reading.outcome.state !== 'failed') || written.length > 0
      ? [{ responseId, loadId: load.loadId, written }]
      : [];
  });
  await insertLoads(tx, windowId, own);
  const ending = endingWindow(tx, windowId, {
    state: counts.fetched === 0 ? 'empty' : 'loaded',
    error: null,
    counts,
    bytes: 0,
    warnings: [],
    suspicious: null,
    unsettled: null,
  });
  const written = writtenBy(({ changed, loads }) => changed > 0 && loads.length === 0);
  if (written.length === 0) {
    await ending;
    return;
  }
  const newLoad = {
    loadId,
    windowId,
    position: BEFORE_ALL,
    fetchedAt: new Date(0),
    written,
  };
  await insertLoad(tx, newLoad, ending);
}

function countRecords(folded: readonly FoldedTable[], ended: readonly ResponseReadAgain[]): RecordCounts {
  const total = (name: 'inserted' | 'updated' | 'unchanged' | 'withdrawn') =>
    folded.reduce((sum, table) => sum + table[name], 0);
  const [inserted, updated, unchanged] = [total('inserted'), total('updated'), total('unchanged')];
  const rejected = ended.reduce((sum, { reading }) => sum + reading.rejects.length, 0);
  return {
    ...NO_COUNTS,
    fetched: inserted + updated + unchanged + rejected,
    inserted,
    updated,
    unchanged,
    rejected,
    withdrawn: total('withdrawn'),
  };
}

interface NumberedResponse extends ResponseOfPart {
  /** Its own load, if it was never loaded, or fills a table that is empty; else the one that first stored it. */
  readonly load: NonNullable<ResponseOfPart['load']>;
  /** True if it was never loaded. */
  readonly isFirst: boolean;
}

/** A response that was read again. */
interface ResponseReadAgain extends NumberedResponse {
  readonly reading: ResponseSaid;
}

/**
 * True if the part is the last one that a response is about: there its facts are written. Where the data set has tables
 * that are divided into days, that is one of their parts.
 */
function endsIn({ days, instruments }: Part, response: ResponseReadAgain): boolean {
  if (days !== null) return response.to <= days.to;
  if (dataSetNamed(response.operation).shapes.some(({ fullSet }) => fullSet === 'days')) return false;
  if (instruments === null) return true;
  const names = response.instruments.map((name) => name.toUpperCase()).sort();
  return instruments.includes(names.at(-1) ?? '');
}

/** True if all that a response is about is replayed by the run: of a part of it, nothing new is said. */
function isWithin(
  replayed: readonly ReplayedRange[],
  { from: first, to: last, instruments }: ResponseReadAgain,
): boolean {
  const names = instruments.map((name) => name.toUpperCase());
  return names.length > 0 && replayed.some((range) => range.instruments.length > 0)
    ? names.every((name) => replayed.some((range) => range.instruments.includes(name)))
    : eachDay(first, last).every((day) => replayed.some(({ from, to }) => from <= day && day <= to));
}

/** Writes what responses that were read again say, and their rejects. */
async function rewriteFacts(
  tx: Transaction,
  part: ReplayedPart,
  responses: readonly ResponseReadAgain[],
): Promise<void> {
  const { runId, windowId, exchange } = part;
  const copied = responses.flatMap((response) => (response.windowId === 0 ? [response.responseId] : []));
  const windowsOf = await insertCopied(tx, runId, copied);
  for (const { responseId, to, instruments, reading } of responses) {
    await replaceFact(tx, {
      responseId,
      windowId: windowsOf.get(responseId) ?? windowId,
      fact: buildFact(
        { coverage: reading.coverage, suspicious: reading.suspicions.length > 0 },
        { to, instruments },
      ),
      resolvesRejects: canResolveRejects(reading),
    });
  }
  // Of several responses of a window, the last one.
  const unsettled = new Map(
    responses.map((response) => [
      response.windowId,
      response.reading.suspicionsWithoutReject.join('; ') || null,
    ]),
  );
  await noteUnsettled(
    tx,
    [...unsettled].map(([id, text]) => ({ windowId: id, unsettled: text })),
  );
  const group = { operations: namesFilling(part.tables), exchange };
  // Parts that are replayed beside this one may have entries in common with it.
  await lockRejects(tx, group, { shared: false });
  const readAgain = responses.map((response) => {
    const by = windowsOf.get(response.responseId);
    return {
      ...response,
      ...(by !== undefined && { windowId: by, runId }),
      requested: response,
      rejects: response.reading.rejects,
      resolves: canResolveRejects(response.reading),
    };
  });
  await rewriteRejects(tx, group, readAgain);
}

/** Writes the coverage of the days of a part, and of those that these responses are about. */
async function sumPartCoverage(
  tx: Transaction,
  part: Part,
  responses: readonly ResponseReadAgain[],
): Promise<void> {
  const about = [
    ...responses.flatMap(({ from, to, reading }) => [from, to, ...reading.coverage.map(({ day }) => day)]),
    ...(part.days === null ? [] : [part.days.from, part.days.to]),
  ].sort();
  const [from, to] = [about[0], about.at(-1)];
  if (from === undefined || to === undefined) return;
  await sumCoverage(tx, {
    operations: namesFilling(part.tables),
    exchange: part.exchange,
    days: { from, to },
  });
}

interface FoldedTable extends Settled {
  readonly table: TableDefinition;
}

/** Gives each response the load that its rows in a copy carry: one of its own, if it needs one. */
async function numberLoads(
  tx: Transaction,
  runId: number,
  responses: readonly ResponseOfPart[],
  fills: boolean,
): Promise<NumberedResponse[]> {
  const numbered: NumberedResponse[] = [];
  for (const response of responses) {
    const load = fills || response.load === null ? { loadId: await nextLoadId(tx), runId } : response.load;
    numbered.push({ ...response, load, isFirst: response.load === null });
  }
  return numbered;
}
