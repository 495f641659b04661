import { eachDay, spanDays } from '../../core/days.ts';
import { BEFORE_ALL } from '../../core/position.ts';
import { type RecordCounts, sumCounts } from '../../core/record-counts.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { dataSetNamed, namesFilling } from '../../operations/registry.ts';
import type { Database } from '../../postgres/database.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import { type Transaction, transaction } from '../../postgres/transaction.ts';
import { sumCoverage } from '../../state/coverage/sum-of-facts.ts';
import { beginLoad, insertLoads, type NewLoad, nextLoadId } from '../../state/loads/loads.ts';
import { locksOfTable } from '../../state/loads/locks.ts';
import { lockRejects, rewriteRejects } from '../../state/rejects.ts';
import {
  buildFact,
  canResolveRejects,
  listUnsettled,
  type ResponseSaid,
  replaceFact,
} from '../../state/responses/response-facts.ts';
import { checkNoneLost, type ResponseOfPart, readResponsesToFold } from '../../state/responses/to-fold.ts';
import { insertCopied } from '../../state/windows/plan.ts';
import { listReplayedParts, type ReplayedRange } from '../../state/windows/read-windows.ts';
import { endingWindow, noteUnsettled } from '../../state/windows/windows.ts';
import { writeWithdrawals } from '../../state/withdrawals.ts';
import { ensurePartitions, setHintBits } from '../merge/merge.ts';
import { type FoldSettings, fillPart, isEmpty, type Settled, settle } from './fold.ts';
import { foldPart, type Part, partOfTable, scopeOfPart } from './part.ts';

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
  settings: FoldSettings,
): Promise<RecordCounts | null> {
  try {
    const days = part.days === null ? [] : eachDay(part.days.from, part.days.to);
    for (const table of part.tables) await ensurePartitions(database, table, days);
    const counts = await transaction(database, (tx) => refold(tx, part, settings));
    const written = (counts?.inserted ?? 0) + (counts?.updated ?? 0);
    for (const table of part.tables)
      if (part.days !== null) await setHintBits(database, table, { exchange: part.exchange, days, written });
    return counts;
  } catch (error) {
    throw databaseError(error);
  }
}

async function refold(
  tx: Transaction,
  part: ReplayedPart,
  settings: FoldSettings,
): Promise<RecordCounts | null> {
  const { windowId, runId, tables, exchange, days } = part;
  const parts = days === null ? null : eachDay(days.from, days.to);
  const rows = tables.flatMap(({ name }) => locksOfTable(name, exchange, parts));
  const begun = await beginLoad(tx, windowId, rows);
  if (begun === null) return null;
  const scope = scopeOfPart(part);
  await checkNoneLost(tx, scope);
  const locked = await readResponsesToFold(tx, scope, { isLocked: true });
  const emptyTables = new Set<TableDefinition>();
  for (const table of tables) if (await isEmpty(tx, partOfTable(part, table, locked))) emptyTables.add(table);
  const load = { loadId: begun.loadId, runId };
  const numbered = await numberLoads(tx, runId, locked, emptyTables.size > 0);
  const { copies, responses } = await foldPart(tx, part, numbered, settings);
  const folded: Settled[] = [];
  for (const copy of copies)
    folded.push(emptyTables.has(copy.table) ? await fillPart(tx, copy) : await settle(tx, copy, load));
  const replayed = await listReplayedParts(tx, windowId);
  const ended = responses.filter((response) => endsIn(part, response) && isWithin(replayed, response));
  // Last, because parts that are replayed beside this one wait for its locks.
  await rewriteFacts(tx, part, ended);
  for (const { table, decided } of folded) {
    const by = { ...load, windowId, operation: namesFilling([table])[0] ?? '', exchange };
    if (decided !== null) await writeWithdrawals(tx, by, decided);
  }
  await sumPartCoverage(tx, part, ended);
  const counts = countRecords(folded, ended);
  const state = counts.fetched === 0 ? 'empty' : 'loaded';
  const newLoads = listNewLoads(part, responses, folded, { loadId: load.loadId, counts });
  await insertLoads(tx, windowId, newLoads, endingWindow(tx, windowId, { state, counts, bytes: 0 }));
  return counts;
}

/** The loads of responses that have one of their own, and that of what has changed besides. */
function listNewLoads(
  { days }: Part,
  responses: readonly ResponseReadAgain[],
  folded: readonly Settled[],
  load: Pick<NewLoad, 'loadId' | 'counts'>,
): NewLoad[] {
  const [from, to] = [days?.from ?? '-infinity', days?.to ?? 'infinity'];
  const listWritten = (isMade: (table: Settled) => boolean) =>
    folded.filter(isMade).map(({ table }) => ({ table: table.name, from, to }));
  const own = responses.flatMap(({ load, isFirst, reading, position, fetchedAt, ...requested }) => {
    const written = listWritten(({ loads }) => loads.includes(load.loadId));
    const isStored = (isFirst && reading.outcome.state !== 'failed') || written.length > 0;
    return isStored ? [{ loadId: load.loadId, position, fetchedAt, written, counts: {}, requested }] : [];
  });
  const written = listWritten(({ changed, loads }) => changed > 0 && loads.length === 0);
  if (written.length === 0) return own;
  return [...own, { ...load, position: BEFORE_ALL, fetchedAt: new Date(0), written }];
}

function countRecords(folded: readonly Settled[], ended: readonly ResponseReadAgain[]): RecordCounts {
  const counts = sumCounts(folded);
  const rejected = ended.reduce((sum, { reading }) => sum + reading.rejects.length, 0);
  const fetched = counts.inserted + counts.updated + counts.unchanged + rejected;
  return { ...counts, fetched, rejected };
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
  for (const response of responses) {
    const { responseId, reading } = response;
    await replaceFact(tx, responseId, windowsOf.get(responseId) ?? windowId, buildFact(reading, response));
  }
  // Of several responses of a window, the last one.
  const unsettled = new Map(
    responses.map((response) => [response.windowId, listUnsettled(response.reading).join('; ') || null]),
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
      rejects: response.reading.rejects,
      resolves: canResolveRejects(response.reading),
    };
  });
  await rewriteRejects(tx, group, readAgain);
}

/** Writes the coverage of the days of a part, and of those that these responses are about. */
async function sumPartCoverage(
  tx: Transaction,
  { tables, exchange, days }: Part,
  responses: readonly ResponseReadAgain[],
): Promise<void> {
  const about = responses.flatMap(({ from, to, reading }) => [
    from,
    to,
    ...reading.coverage.map(({ day }) => day),
  ]);
  if (days !== null) about.push(days.from, days.to);
  const span = spanDays(about.sort());
  if (span !== null) await sumCoverage(tx, { operations: namesFilling(tables), exchange, days: span });
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
