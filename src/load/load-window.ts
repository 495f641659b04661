import { type RecordCounts, sumCounts } from '../core/record-counts.ts';
import { comparedDay } from '../operations/registry.ts';
import type { Database } from '../postgres/database.ts';
import { databaseError } from '../postgres/database-errors.ts';
import { type Transaction, transaction } from '../postgres/transaction.ts';
import { beginLoad, insertLoads, type Written } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { listUnsettled } from '../state/responses/response-facts.ts';
import { hasLaterOrOwnLoad } from '../state/responses/to-fold.ts';
import { endingWindow } from '../state/windows/windows.ts';
import { partAbout } from './fold/fold.ts';
import { foldLateResponse, scopeOfRows } from './fold/fold-late.ts';
import {
  applyResponse,
  type DatedResponse,
  ensurePartitions,
  ensureStage,
  listDays,
  lockedParts,
  type StoredRows,
  setHintBits,
} from './merge/merge.ts';
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
 * Stores a response in one transaction: rows, rejects, coverage and the window's state commit together or not at all.
 *
 * Never deadlocks with other loads, because every load takes its locks in the same order: the window's row, the
 * advisory locks of its tables' days or entries (sorted), the one of kept bodies, those of rejects, rejects by
 * fingerprint, coverage rows (sorted), and the advisory lock of states.
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
    for (const { table, days } of tables)
      await setHintBits(database, table, { exchange: load.exchange, days, written });
    return stored;
  } catch (error) {
    throw databaseError(error);
  }
}

/** What of a response is to be stored, by table: rows to merge, or days of which rows may be withdrawn. */
function listTablesToLoad(load: WindowLoad): DatedResponse[] {
  const filled = load.batches.filter((batch) => batch.rows.length > 0);
  const tables = new Set([...filled, ...load.fullSets].map(({ table }) => table));
  return [...tables]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((table) => partAbout(load, table))
    .map((response) => ({ ...response, days: listDays(response) }));
}

async function storeLoad(
  tx: Transaction,
  received: WindowLoad,
  tables: readonly DatedResponse[],
): Promise<StoredLoad | null> {
  const locks = tables.flatMap(({ table, rows, days }) =>
    locksOfTable(table.name, received.exchange, lockedParts(table, rows, days)),
  );
  const begun = await beginLoad(tx, received.windowId, locks);
  if (begun === null) return null;
  const position = (await received.positionAmongFiles?.(tx)) ?? received.position;
  const load = { ...received, ...begun, position };
  const stored: StoredTable[] = [];
  for (const response of tables) stored.push(await storeTable(tx, load, response));
  await writeFacts(tx, load);
  const withheld = await writeDecided(
    tx,
    load,
    stored.flatMap(({ decided }) => decided ?? []),
  );
  const counts = countRecords(load, stored);
  const end = buildEnd(load, counts, withheld);
  const { loadId, windowId, fetchedAt } = load;
  const digest = isClean(load, end) ? load.digest : undefined;
  const written = stored.flatMap((table) => table.changed);
  const newLoad = { loadId, position, fetchedAt, written, counts, digest };
  const newLoads = load.outcome.state === 'failed' ? [] : [newLoad];
  // The last statement before the commit: state numbers have to follow the order of commits.
  await insertLoads(tx, windowId, newLoads, endingWindow(tx, windowId, end));
  return { loadId, counts };
}

/** What became of one table's records, and the days of the rows that it changed. */
interface StoredTable extends StoredRows {
  readonly changed: readonly Written[];
}

/**
 * Stores the part of a response that is about one table, so that the rows are the same as if all responses loaded so far
 * had been loaded in the order in which they were fetched. Nearly always this one was fetched last.
 *
 * @throws PipelineError `unreadable`; `database` if a response that was fetched later is not kept.
 */
async function storeTable(tx: Transaction, load: Load, response: DatedResponse): Promise<StoredTable> {
  const { table, days } = response;
  await ensureStage(tx.client, table);
  const scope = scopeOfRows(load, response);
  const isLast = !(await hasLaterOrOwnLoad(tx, scope, load.position));
  const stored = isLast
    ? await applyResponse(tx.client, load, response)
    : await foldLateResponse(tx, load, response, scope);
  if (stored.written + stored.withdrawn === 0) return { ...stored, changed: [] };
  const [from = '-infinity', to = 'infinity'] = comparedDay(table) === null ? [] : [days[0], days.at(-1)];
  return { ...stored, changed: [{ table: table.name, from, to }] };
}

function countRecords({ rejects, batches }: Load, stored: readonly StoredTable[]): RecordCounts {
  const rows = batches.reduce((sum, batch) => sum + batch.rows.length, 0);
  return { ...sumCounts(stored), fetched: rows + rejects.length, rejected: rejects.length };
}

type Withheld = Awaited<ReturnType<typeof writeDecided>>;

function buildEnd(load: Load, counts: RecordCounts, withheld: Withheld) {
  const { outcome, bytes, warnings, doubts } = load;
  const reasons = [
    ...doubts.map(({ message }) => message),
    ...withheld.flatMap((withdrawal) => withdrawal.withheld ?? []),
  ];
  const unsettled = joined(listUnsettled(load));
  return { ...outcome, counts, bytes, warnings, suspicious: joined(reasons), unsettled };
}

/** True if there was nothing to say of a response: then the same bytes need not be read again (`repeatLoad`). */
const isClean = ({ coverage, rejects }: Load, { warnings, suspicious }: ReturnType<typeof buildEnd>) =>
  rejects.length === 0 &&
  warnings.length === 0 &&
  suspicious === null &&
  coverage.length > 0 &&
  coverage.every(({ state }) => state === 'loaded');

const joined = (reasons: readonly string[]) => reasons.join('; ') || null;
