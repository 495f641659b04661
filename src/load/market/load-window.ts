import type { DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import type { Position } from '../../core/position.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { namesFilling } from '../../operations/registry.ts';
import type { Row, TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';
import { databaseError } from '../database/database-errors.ts';
import { type Transaction, transaction } from '../database/transaction.ts';
import { writeCoverage } from '../state/coverage/coverage.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { type BegunLoad, beginLoad, insertLoad, type Written } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { writeRejects } from '../state/rejects.ts';
import { canResolveRejects, factOf } from '../state/responses/response-facts.ts';
import { keepResponse, type ResponseToKeep } from '../state/responses/responses.ts';
import { hasLaterOrOwnLoad } from '../state/responses/to-fold.ts';
import { endingWindow } from '../state/windows/windows.ts';
import { type DayWithdrawal, writeWithdrawals } from '../state/withdrawals.ts';
import type { ReadAgain, ResponseReading } from './fold/fold.ts';
import { foldLateResponse, type ResponseOfTable, scopeOfRows } from './fold/fold-late.ts';
import {
  applyResponse,
  changedDays,
  daysOf,
  daysOfRows,
  ensurePartitions,
  ensureStage,
  type FullSet,
  lockedParts,
  type StoredRows,
  setHintBits,
} from './merge/merge.ts';

/** A response as it was received, with what its window requested. */
export interface ReceivedResponse extends Pair, DayRange {
  readonly windowId: number;
  readonly runId: number;
  /** Where the response stands in the order of responses. */
  readonly position: Position;
  /** Of a file: its position among those that were imported, which may be before theirs. Called with the locks held. */
  readonly positionAmongFiles?: ((tx: Transaction) => Promise<Position>) | undefined;
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

/** The load of a response that has begun: its position is final, and the locks of its rows are held. */
type Load = WindowLoad & BegunLoad;

async function storeLoad(
  tx: Transaction,
  received: WindowLoad,
  tables: readonly TableToLoad[],
): Promise<StoredLoad | null> {
  const locks = tables.flatMap(({ table, rows, days }) =>
    locksOfTable(table.name, received.exchange, lockedParts(table, rows, days)),
  );
  const begun = await beginLoad(tx, received.windowId, locks);
  if (begun === null) return null;
  const position = (await received.positionAmongFiles?.(tx)) ?? received.position;
  const load = { ...received, ...begun, position };
  const stored: StoredTable[] = [];
  for (const part of tables) stored.push(await storeTable(tx, { ...load, ...part }));
  await writeFacts(tx, load);
  const withheld = await writeDecided(tx, load, stored);
  const counts = countsOf(load, stored);
  const ending = endingWindow(tx, load.windowId, endOf(load, counts, withheld));
  if (load.outcome.state === 'failed') await ending;
  // The last statement before the commit: state numbers have to follow the order of commits.
  else await insertLoad(tx, { ...load, written: stored.flatMap(({ changed }) => changed ?? []) }, ending);
  return { loadId: load.loadId, counts };
}

/** What became of one table's records. */
interface StoredTable extends StoredRows {
  readonly table: TableDefinition;
  /** Days of the rows that it changed; null if it changed none. */
  readonly changed: Written | null;
}

/**
 * Stores the part of a response that is about one table, so that the rows are the same as if all responses loaded so far
 * had been loaded in the order in which they were fetched. Nearly always this one was fetched last.
 *
 * @throws PipelineError `unreadable`; `database` if a response that was fetched later is not kept.
 */
async function storeTable(tx: Transaction, part: ResponseOfTable): Promise<StoredTable> {
  const { table, rows, fullSet } = part;
  await ensureStage(tx.client, table);
  const scope = scopeOfRows(part);
  const isLast = !(await hasLaterOrOwnLoad(tx, scope, part.position));
  const stored = isLast ? await applyResponse(tx.client, part) : await foldLateResponse(tx, part, scope);
  const isChanged = stored.written + stored.withdrawn > 0;
  const changed = isChanged ? { table: table.name, ...changedDays(table, rows, fullSet) } : null;
  return { ...stored, table, changed };
}

/** Keeps the response, what it said of its entries, and its rejects. */
async function writeFacts(tx: Transaction, load: Load): Promise<void> {
  const { position, fetchedAt, coverage, response } = load;
  const suspicious = load.suspicions.length > 0;
  if (response !== undefined) {
    const fact = factOf({ coverage, suspicious }, load);
    const noted = { position, fetchedAt, fact, resolvesRejects: canResolveRejects(load) };
    await keepResponse(tx, load.windowId, { ...response, ...noted });
  }
  await writeRejects(tx, load.exchange, [{ ...load, requested: load }]);
  await writeCoverage(tx, { ...load, suspicious });
}

/**
 * Stores what became of rows that the response does not list, and what follows for the coverage of their days.
 *
 * @returns what is withheld.
 */
async function writeDecided(
  tx: Transaction,
  load: Load,
  stored: readonly StoredTable[],
): Promise<readonly DayWithdrawal[]> {
  let withheld: readonly DayWithdrawal[] = [];
  for (const { table, decided, withdrawals } of stored) {
    if (decided === null) continue;
    withheld = withheld.concat(await writeWithdrawals(tx, load, decided, withdrawals));
    if (withdrawals.length === 0 && !decided.isFolded) continue;
    const days = decided.days?.toSorted();
    const [from, to] = [days?.[0], days?.at(-1)];
    await sumCoverage(tx, {
      operations: namesFilling([table]),
      exchange: load.exchange,
      days: from === undefined || to === undefined ? null : { from, to },
    });
  }
  return withheld;
}

function countsOf({ rejects, batches }: Load, stored: readonly StoredTable[]): RecordCounts {
  const rows = batches.reduce((sum, batch) => sum + batch.rows.length, 0);
  const counts = { ...NO_COUNTS, fetched: rows + rejects.length, rejected: rejects.length };
  for (const name of ['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'withdrawn'] as const)
    for (const table of stored) counts[name] += table[name];
  return counts;
}

function endOf(
  { outcome, bytes, warnings, suspicions, suspicionsWithoutReject }: WindowLoad,
  counts: RecordCounts,
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
