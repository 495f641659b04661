import { drizzle } from 'drizzle-orm/node-postgres';
import type { PoolClient } from 'pg';
import type { Row, TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';
import { databaseError } from '../database/errors.ts';
import { type CoverageEntry, writeCoverage } from '../state/coverage.ts';
import { type RejectEntry, writeRejects } from '../state/rejects.ts';
import { type AnswerToKeep, keepAnswer } from '../state/responses.ts';
import { lockOpenWindow, type RecordCounts, storeWindow } from '../state/windows.ts';
import { type RowDifference, sampleDifferences } from './differences.ts';
import { settle } from './hint-bits.ts';
import { recordAliases, type Written } from './instruments/observed-aliases.ts';
import type { Standing } from './keep-stored.ts';
import { ensurePartitions } from './partitions.ts';
import { ensureStage, type FullSet, mergeTable, touchedDays } from './stage.ts';

/** All of one answer, ready to be stored. */
export interface WindowLoad {
  readonly windowId: number;
  readonly runId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly batches: readonly { readonly table: TableDefinition; readonly rows: readonly Row[] }[];
  readonly rejects: readonly RejectEntry[];
  readonly fullSets: readonly FullSet[];
  /** Share of the rows present that may be withdrawn at once, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
  readonly coverage: readonly CoverageEntry[];
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed'; readonly error: string | null };
  /** Bytes the answer took on the wire. */
  readonly bytes: number;
  readonly warnings: readonly string[];
  /** Kept for replay; left out where nothing is to be kept, or is kept already. */
  readonly answer?: AnswerToKeep | undefined;
  /** Windows whose open rejects are among the records of this answer, read once more. */
  readonly rereads?: readonly number[];
  /** Stored values that stand, because this answer knows less; none when not given. */
  readonly standing?: Standing | undefined;
  /** Compare and count as usual, then roll the rows back: only the window keeps what it saw. */
  readonly preview: boolean;
}

/**
 * Stores an answer in one transaction: rows, rejects, coverage and the window's state commit
 * together or not at all (house rule 1).
 *
 * Never deadlocks with other loads: every load takes its locks in the same order (window row, then
 * per table by name the advisory locks of its days, sorted, then the one of kept bodies, then rejects by
 * number, then coverage rows, sorted, then the one of the exchange's instruments).
 *
 * @returns what became of the records, or null when the window had ended already (another worker
 *   finished it, or it was cancelled): then nothing was written.
 * @throws PipelineError of kind `database`.
 */
export async function loadWindow(database: Database, load: WindowLoad): Promise<RecordCounts | null> {
  const tables = tablesOf(load);
  let client: PoolClient;
  try {
    for (const { table, rows } of tables) await ensurePartitions(database, table, rows);
    client = await database.pool.connect();
  } catch (error) {
    throw databaseError(error);
  }
  let broken: Error | undefined;
  try {
    for (const { table } of tables) await ensureStage(client, table);
    const counts = await inTransaction(client, load, tables);
    const written = counts === null ? 0 : counts.inserted + counts.updated;
    for (const batch of load.batches) await settle(client, batch, load.exchange, written);
    return counts;
  } catch (error) {
    broken = error instanceof Error ? error : new Error(String(error));
    throw databaseError(error);
  } finally {
    // A connection that saw an error is thrown away: its transaction dies with it.
    client.release(broken);
  }
}

/** Tables with rows to merge or rows to withdraw, by name: locks are taken in this order. */
function tablesOf(load: WindowLoad): WindowLoad['batches'] {
  const batches = load.batches.filter((batch) => batch.rows.length > 0);
  const empty = load.fullSets
    .filter((set) => !batches.some((batch) => batch.table === set.table))
    .map((set) => ({ table: set.table, rows: [] }));
  return [...batches, ...empty].sort((a, b) => (a.table.name < b.table.name ? -1 : 1));
}

async function inTransaction(
  client: PoolClient,
  load: WindowLoad,
  tables: WindowLoad['batches'],
): Promise<RecordCounts | null> {
  await client.query('begin');
  const tx = drizzle(client);
  if (!(await lockOpenWindow(tx, load.windowId))) {
    await client.query('rollback');
    return null;
  }
  const counts = {
    ...{ fetched: load.rejects.length, rejected: load.rejects.length },
    ...{ inserted: 0, updated: 0, unchanged: 0, stale: 0, duplicate: 0, withdrawn: 0 },
  };
  const suspicions: string[] = [];
  const written: Written[] = [];
  for (const { table, rows } of tables) {
    const { runId, maxWithdrawShare, standing } = load;
    const fullSet = load.fullSets.find((set) => set.table === table);
    const merged = await mergeTable(client, { table, rows, runId, fullSet, maxWithdrawShare, standing });
    for (const name of ['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'withdrawn'] as const) {
      counts[name] += merged[name];
    }
    counts.fetched += rows.length;
    // A stale row may have been listed again: then it was written.
    const replaced = merged.updated + merged.stale + merged.withdrawn > 0;
    if (replaced || merged.inserted > 0) {
      const [from, to] = touchedDays(table, rows, fullSet);
      written.push({ table, exchange: load.exchange, runId, from, to, replaced });
    }
    if (merged.suspicious !== null) suspicions.push(merged.suspicious);
  }
  const { outcome, bytes, warnings } = load;
  const stored = { ...outcome, counts, bytes, warnings, suspicious: suspicions.join('; ') || null };
  if (load.preview) {
    const preview = await samplesOf(client, load, tables);
    await client.query('rollback');
    await client.query('begin');
    await storeWindow(tx, load.windowId, { ...stored, preview });
  } else {
    if (load.answer !== undefined) await keepAnswer(tx, load.windowId, load.answer);
    await writeRejects(tx, load);
    await writeCoverage(tx, load);
    await recordAliases(client, written);
    await storeWindow(tx, load.windowId, stored);
  }
  await client.query('commit');
  return counts;
}

/** Sample rows of each kind of change that a preview shows, per table. */
const PREVIEW_SAMPLES = 5;

async function samplesOf(client: PoolClient, { runId }: WindowLoad, tables: WindowLoad['batches']) {
  const samples: RowDifference[] = [];
  for (const { table } of tables) {
    samples.push(...(await sampleDifferences(client, table, runId, PREVIEW_SAMPLES)));
  }
  return samples;
}
