import { NO_COUNTS, type RecordCounts } from '../core/record-counts.ts';
import type { Row, TableDefinition } from '../declaration/table.ts';
import type { Database } from '../postgres/database.ts';
import { databaseError } from '../postgres/database-errors.ts';
import { type Transaction, transaction } from '../postgres/transaction.ts';
import { beginLoad, insertLoad } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { endingWindow } from '../state/windows/windows.ts';
import type { DayWithdrawal } from '../state/withdrawals.ts';
import {
  daysOfRows,
  ensurePartitions,
  type FullSet,
  listFullDays,
  lockedParts,
  setHintBits,
} from './merge/merge.ts';
import { type StoredTable, storeTable } from './store-table.ts';
import type { Load, WindowLoad } from './window-load.ts';
import { writeDecided, writeFacts } from './write-facts.ts';

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
  const tables = listTablesToLoad(load);
  try {
    for (const { table, days } of tables) await ensurePartitions(database, table, days);
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

function listTablesToLoad(load: WindowLoad): TableToLoad[] {
  const batches = load.batches.filter((batch) => batch.rows.length > 0);
  const empty = load.fullSets
    .filter((set) => !batches.some((batch) => batch.table === set.table))
    .map((set) => ({ table: set.table, rows: [] }));
  return [...batches, ...empty]
    .sort((a, b) => (a.table.name < b.table.name ? -1 : 1))
    .map(({ table, rows }) => {
      const fullSet = load.fullSets.find((set) => set.table === table);
      return {
        table,
        rows,
        fullSet,
        days: [...new Set([...daysOfRows(table, rows), ...listFullDays(fullSet)])],
      };
    });
}

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
  const counts = countRecords(load, stored);
  const end = buildEnd(load, counts, withheld);
  const ending = endingWindow(tx, load.windowId, end);
  const digest = isClean(load, end) ? load.digest : undefined;
  const written = stored.flatMap(({ changed }) => changed ?? []);
  if (load.outcome.state === 'failed') await ending;
  // The last statement before the commit: state numbers have to follow the order of commits.
  else await insertLoad(tx, { ...load, digest, written }, ending);
  return { loadId: load.loadId, counts };
}

function countRecords({ rejects, batches }: Load, stored: readonly StoredTable[]): RecordCounts {
  const rows = batches.reduce((sum, batch) => sum + batch.rows.length, 0);
  const counts = { ...NO_COUNTS, fetched: rows + rejects.length, rejected: rejects.length };
  for (const name of ['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'withdrawn'] as const)
    for (const table of stored) counts[name] += table[name];
  return counts;
}

function buildEnd(
  { outcome, bytes, warnings, suspicions, suspicionsWithoutReject }: WindowLoad,
  counts: RecordCounts,
  withheld: readonly DayWithdrawal[],
) {
  const reasons = [...suspicions, ...withheld.flatMap((withdrawal) => withdrawal.withheld ?? [])];
  return {
    ...outcome,
    counts,
    bytes,
    warnings,
    suspicious: joined(reasons),
    unsettled: joined(suspicionsWithoutReject),
  };
}

/** True if there was nothing to say of a response: then the same bytes need not be read again (`repeatLoad`). */
const isClean = ({ coverage, rejects }: Load, { warnings, suspicious }: ReturnType<typeof buildEnd>) =>
  rejects.length === 0 &&
  warnings.length === 0 &&
  suspicious === null &&
  coverage.length > 0 &&
  coverage.every(({ state }) => state === 'loaded');

const joined = (reasons: readonly string[]) => reasons.join('; ') || null;
