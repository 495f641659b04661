import type { DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import type { Position } from '../../core/position.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { dataSetNamed, listedInFull } from '../../operations/registry.ts';
import type { Row, TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';
import { databaseError } from '../database/database-errors.ts';
import { type Transaction, transaction } from '../database/transaction.ts';
import { writeCoverage } from '../state/coverage/coverage.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { type BegunLoad, beginLoad, insertLoad, type Written } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { hasLaterOrOwnLoad, wasLoaded } from '../state/loads/other-loads.ts';
import { writeRejects } from '../state/rejects.ts';
import { positionOfFile } from '../state/responses/files-of-session.ts';
import { canResolveRejects, factOf } from '../state/responses/response-facts.ts';
import { keepResponse, type ResponseToKeep } from '../state/responses/responses.ts';
import { endingWindow } from '../state/windows/windows.ts';
import { type DayWithdrawal, type DecidedDays, writeWithdrawals } from '../state/withdrawals.ts';
import type { ReadAgain, ResponseReading } from './fold/fold.ts';
import { hasRequestedSymbol } from './fold/fold-sql.ts';
import { mergeOrFold, scopeOf } from './fold/merge-or-fold.ts';
import {
  changedDays,
  daysOf,
  daysOfRows,
  ensurePartitions,
  ensureStage,
  type FullSet,
  lockedParts,
  setHintBits,
} from './merge/merge.ts';

/** A response as it was received, with what its window requested. */
export interface ReceivedResponse extends Pair, DayRange {
  readonly windowId: number;
  readonly runId: number;
  /** Where the response stands in the order of responses, unless it is a file that comes before others. */
  readonly position: Position;
  /** The time of the call. */
  readonly fetchedAt: Date;
  /** Bytes the response took on the wire. */
  readonly bytes: number;
  /** SHA-256 of the response and of the code that read it, in hex; not given for imports and replays. */
  readonly digest?: string | undefined;
  /** What to keep for replay; not given if the rows are computed from stored ones. */
  readonly response?: ResponseToKeep | undefined;
}

/** All of one response, ready to be stored. */
interface WindowLoad extends ReceivedResponse, ResponseReading {
  /** Share of the rows present that may be withdrawn at once, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed'; readonly error: string | null };
  readonly warnings: readonly string[];
  /** Reads kept responses again, if this one is loaded after one that was fetched later. */
  readonly readAgain: ReadAgain;
}

/** A response that was stored. */
interface StoredLoad {
  /** The number that the rows carry which it wrote. */
  readonly loadId: number;
  /** What became of its records. */
  readonly counts: RecordCounts;
}

/**
 * Stores a response in one transaction: rows, rejects, coverage and the window's state commit
 * together or not at all.
 *
 * Never deadlocks with other loads, because every load takes its locks in the same order: the window's row, the
 * advisory locks of its tables' days or entries (sorted), the one of kept bodies,
 * those of rejects, rejects by fingerprint, coverage rows (sorted), and the advisory lock of states.
 *
 * @returns null if the window had ended already (another worker finished it, or it was cancelled); then nothing was
 *   written.
 * @throws PipelineError of kind `database` or `database_unreachable`.
 */
export async function loadWindow(database: Database, load: WindowLoad): Promise<StoredLoad | null> {
  const tables = tablesOf(load);
  try {
    for (const { table, rows } of tables) await ensurePartitions(database, table, rows);
    const stored = await transaction(database, (tx) => storeLoad(tx, load, tables));
    const written = stored === null ? 0 : stored.counts.inserted + stored.counts.updated;
    for (const { table, rows } of load.batches) {
      const days = daysOfRows(table, rows);
      await setHintBits(database, table, { exchange: load.exchange, days, written });
    }
    return stored;
  } catch (error) {
    throw databaseError(error);
  }
}

/** A table with rows to merge or rows to withdraw. */
interface TableToLoad {
  readonly table: TableDefinition;
  readonly rows: readonly Row[];
  readonly fullSet: FullSet | undefined;
  /** Days of its rows and those that the response lists in full. */
  readonly days: readonly string[];
}

function tablesOf(load: WindowLoad): TableToLoad[] {
  const batches = load.batches.filter((batch) => batch.rows.length > 0);
  const empty = load.fullSets
    .filter((set) => !batches.some((batch) => batch.table === set.table))
    .map((set) => ({ table: set.table, rows: [] }));
  return [...batches, ...empty]
    .sort((a, b) => (a.table.name < b.table.name ? -1 : 1))
    .map(({ table, rows }) => {
      const fullSet = load.fullSets.find((set) => set.table === table);
      return { table, rows, fullSet, days: [...new Set([...daysOfRows(table, rows), ...daysOf(fullSet)])] };
    });
}

/** A scope that covers all loads that the merge and the coverage of the response depend on. */
function scopeOfLoad(
  load: WindowLoad,
  tables: readonly TableToLoad[],
  { from, to, instruments }: BegunLoad,
): Parameters<typeof hasLaterOrOwnLoad>[1] {
  const { operation, exchange, coverage } = load;
  const scopes = tables.map((one) => scopeOf({ ...one, exchange }));
  // Where no response lists its tables in full, and rows have the requested symbol, only responses about the same
  // instruments have rows in common.
  const isApart =
    tables.length > 0 &&
    tables.every(({ table }) => listedInFull(table) === 'none' && hasRequestedSymbol(table));
  const { dates } = dataSetNamed(operation).request;
  const isDated = dates !== 'none' && scopes.every((scope) => scope.days !== null);
  const days = [from, to, ...coverage.map(({ day }) => day), ...tables.flatMap((one) => one.days)].sort();
  return {
    operations: [...new Set([operation, ...scopes.flatMap((scope) => scope.operations)])],
    exchange,
    days: isDated ? { from: days[0] ?? from, to: days.at(-1) ?? to } : null,
    instruments: isApart ? instruments : [],
  };
}

async function storeLoad(
  tx: Transaction,
  given: WindowLoad,
  tables: readonly TableToLoad[],
): Promise<StoredLoad | null> {
  const { client } = tx;
  const rows = tables.flatMap(({ table, rows, days }) =>
    locksOfTable(table.name, given.exchange, lockedParts(table, rows, days)),
  );
  const begun = await beginLoad(tx, given.windowId, rows);
  if (begun === null) return null;
  const fileOrder = given.response?.fileOrder;
  const position =
    fileOrder === undefined ? given.position : await positionOfFile(tx, { ...given, fileOrder });
  const load = { ...given, position };
  const { loadId } = begun;
  for (const { table } of tables) await ensureStage(client, table);
  const laterOrOwn = await hasLaterOrOwnLoad(tx, scopeOfLoad(load, tables, begun), load.position);
  const merged = await mergeTables(tx, load, begun, tables, laterOrOwn);
  const resolvesRejects = canResolveRejects(load);
  const suspicious = load.suspicions.length > 0;
  if (load.response !== undefined) {
    const fact = factOf({ coverage: load.coverage, suspicious }, begun);
    const noted = { position, fetchedAt: load.fetchedAt, fact, resolvesRejects };
    await keepResponse(tx, load.windowId, { ...load.response, ...noted });
  }
  await writeRejects(tx, load.exchange, [{ ...load, requested: begun }]);
  await writeCoverage(tx, { ...load, suspicious });
  const withheld = await writeDecided(tx, { ...load, loadId }, merged);
  const ending = endingWindow(tx, load.windowId, endOf(load, merged, withheld));
  if (load.outcome.state === 'failed' || (laterOrOwn && (await isRepetition(tx, load, merged)))) {
    await ending;
  } else {
    // The last statement before the commit: state numbers have to follow the order of commits.
    await insertLoad(tx, { ...load, loadId, written: merged.written }, ending);
  }
  return { loadId, counts: merged.counts };
}

/**
 * Stores what became of rows that the response does not list, and what follows for the coverage of their days.
 *
 * @returns what is withheld.
 */
async function writeDecided(
  tx: Transaction,
  load: WindowLoad & { readonly loadId: number },
  { decided, withdrawals }: MergedTables,
): Promise<readonly DayWithdrawal[]> {
  let withheld: readonly DayWithdrawal[] = [];
  for (const one of decided) {
    const ofTable = withdrawals.filter(({ table }) => table === one.table);
    withheld = withheld.concat(await writeWithdrawals(tx, load, one, ofTable));
    if (ofTable.length === 0 && !one.isFolded) continue;
    const days = one.days?.toSorted();
    const [from, to] = [days?.[0], days?.at(-1)];
    await sumCoverage(tx, {
      operations: one.operations,
      exchange: load.exchange,
      days: from === undefined || to === undefined ? null : { from, to },
    });
  }
  return withheld;
}

/** True if the response was loaded before and changes nothing now. Then there is no new state and no new load. */
async function isRepetition(tx: Transaction, load: WindowLoad, merged: MergedTables): Promise<boolean> {
  return merged.written.length === 0 && (await wasLoaded(tx, load.position));
}

function endOf(
  { outcome, bytes, warnings, suspicions, suspicionsWithoutReject }: WindowLoad,
  { counts }: MergedTables,
  withheld: readonly DayWithdrawal[],
) {
  const reasons = [...suspicions, ...withheld.flatMap((one) => one.withheld ?? [])];
  return {
    ...outcome,
    counts,
    bytes,
    warnings,
    suspicious: joined(reasons),
    unsettled: joined(suspicionsWithoutReject),
  };
}

const joined = (reasons: readonly string[]) => reasons.join('; ') || null;

interface MergedTables {
  readonly counts: RecordCounts;
  readonly withdrawals: readonly DayWithdrawal[];
  readonly written: readonly Written[];
  /** Of each table, the days that the response lists in full, or whose responses were folded. */
  readonly decided: readonly DecidedDays[];
}

async function mergeTables(
  tx: Transaction,
  load: WindowLoad,
  begun: BegunLoad,
  tables: readonly TableToLoad[],
  laterOrOwn: boolean,
): Promise<MergedTables> {
  const counts = { ...NO_COUNTS, fetched: load.rejects.length, rejected: load.rejects.length };
  const withdrawals: DayWithdrawal[] = [];
  const written: Written[] = [];
  const decided: DecidedDays[] = [];
  for (const one of tables) {
    const { table, rows, fullSet } = one;
    const merged = await mergeOrFold(tx, { ...load, ...begun, ...one, isLast: !laterOrOwn });
    for (const name of ['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'withdrawn'] as const) {
      counts[name] += merged[name];
    }
    counts.fetched += rows.length;
    if (merged.written + merged.withdrawn > 0) {
      written.push({ table: table.name, ...changedDays(table, rows, fullSet) });
    }
    for (const one of merged.withdrawals) withdrawals.push(one);
    const days = fullSet?.days === null ? null : daysOf(fullSet);
    const listed = fullSet && { table: table.name, operations: [load.operation], days, isFolded: false };
    const own = merged.decided ?? listed;
    if (own) decided.push(own);
  }
  return { counts, withdrawals, written, decided };
}
