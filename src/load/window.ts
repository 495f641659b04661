import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Row, TableDefinition } from '../operations/table.ts';
import { encodeRows } from './copy.ts';
import { type CoverageEntry, writeCoverage } from './coverage.ts';
import type { Database } from './database.ts';
import { databaseError } from './failures.ts';
import { mergeSql } from './merge-sql.ts';
import { ensurePartitions } from './partitions.ts';
import { type RejectEntry, writeRejects } from './rejects.ts';
import { settle } from './settle.ts';

/** What became of the records of an answer. `fetched` is the sum of all the others. */
export interface RecordCounts {
  readonly fetched: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly duplicate: number;
  readonly rejected: number;
}

/** All of one answer, ready to be stored. */
export interface WindowLoad {
  readonly windowId: number;
  readonly runId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly batches: readonly { readonly table: TableDefinition; readonly rows: readonly Row[] }[];
  readonly rejects: readonly RejectEntry[];
  readonly coverage: readonly CoverageEntry[];
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed'; readonly error: string | null };
  /** Bytes the answer took on the wire. */
  readonly bytes: number;
  readonly warnings: readonly string[];
}

/**
 * Stores an answer in one transaction: rows, rejects, coverage and the window's state commit
 * together or not at all (house rule 1).
 *
 * Never deadlocks with other loads: every load takes its locks in the same order (window row, then
 * per table by name the advisory locks of its days, sorted, then coverage rows, sorted).
 *
 * @returns what became of the records, or null when the window had ended already (another worker
 *   finished it, or it was cancelled): then nothing was written.
 * @throws PipelineError of kind `database`.
 */
export async function loadWindow(database: Database, load: WindowLoad): Promise<RecordCounts | null> {
  const batches = load.batches
    .filter((batch) => batch.rows.length > 0)
    .sort((a, b) => (a.table.name < b.table.name ? -1 : 1));
  let client: PoolClient;
  try {
    for (const batch of batches) await ensurePartitions(database, batch.table, batch.rows);
    client = await database.pool.connect();
  } catch (error) {
    throw databaseError(error);
  }
  let broken: Error | undefined;
  try {
    for (const batch of batches) await ensureStage(client, batch.table);
    const counts = await inTransaction(client, load, batches);
    const written = counts === null ? 0 : counts.inserted + counts.updated;
    for (const batch of batches) await settle(client, batch, load.exchange, written);
    return counts;
  } catch (error) {
    broken = error instanceof Error ? error : new Error(String(error));
    throw databaseError(error);
  } finally {
    // A connection that saw an error is thrown away: its transaction dies with it.
    client.release(broken);
  }
}

async function inTransaction(
  client: PoolClient,
  load: WindowLoad,
  batches: WindowLoad['batches'],
): Promise<RecordCounts | null> {
  await client.query('begin');
  const open = await client.query(
    "select from etl.windows where id = $1 and state in ('pending', 'running') for update",
    [load.windowId],
  );
  if (open.rowCount === 0) {
    await client.query('rollback');
    return null;
  }
  const counts = { fetched: 0, inserted: 0, updated: 0, unchanged: 0, stale: 0, duplicate: 0, rejected: 0 };
  for (const batch of batches) {
    const merged = await mergeBatch(client, batch.table, batch.rows, load.runId);
    for (const name of ['inserted', 'updated', 'unchanged', 'stale', 'duplicate'] as const) {
      counts[name] += merged[name];
    }
    counts.fetched += batch.rows.length;
  }
  await writeRejects(client, load);
  counts.rejected = load.rejects.length;
  counts.fetched += load.rejects.length;
  await writeCoverage(client, load);
  await client.query(
    `update etl.windows set state = $2, error = $3, bytes = bytes + $4, warnings = $5,
       fetched = $6, inserted = $7, updated = $8, unchanged = $9, stale = $10, duplicate = $11, rejected = $12,
       diagnostic = null, finished_at = clock_timestamp()
     where id = $1`,
    [
      ...[load.windowId, load.outcome.state, load.outcome.error, load.bytes, load.warnings],
      ...[counts.fetched, counts.inserted, counts.updated, counts.unchanged],
      ...[counts.stale, counts.duplicate, counts.rejected],
    ],
  );
  await client.query('commit');
  return counts;
}

type Merged = Omit<RecordCounts, 'fetched' | 'rejected'>;

/** COPY into the staging table, then one statement that touches only rows that differ. */
async function mergeBatch(
  client: PoolClient,
  table: TableDefinition,
  rows: readonly Row[],
  runId: number,
): Promise<Merged> {
  const sql = mergeSql(table);
  await pipeline(Readable.from(encodeRows(table, rows)), client.query(copyFrom(sql.copy)));
  await client.query(sql.lock);
  const result = await client.query<Record<keyof Merged, string>>({
    name: `merge_${table.name}`,
    text: sql.merge,
    values: [runId],
  });
  const row = result.rows[0] as Record<keyof Merged, string>;
  return {
    inserted: Number(row.inserted),
    updated: Number(row.updated),
    unchanged: Number(row.unchanged),
    stale: Number(row.stale),
    duplicate: Number(row.duplicate),
  };
}

const staged = new WeakMap<PoolClient, Set<string>>();

/** The staging table of this connection; made outside the transaction, so that it outlives it. */
async function ensureStage(client: PoolClient, table: TableDefinition): Promise<void> {
  let known = staged.get(client);
  if (known === undefined) {
    known = new Set();
    staged.set(client, known);
  }
  if (known.has(table.name)) return;
  await client.query(mergeSql(table).createStage);
  known.add(table.name);
}
