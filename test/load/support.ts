import type { Position } from '../../src/core/position.ts';
import type { RecordCounts } from '../../src/core/record-counts.ts';
import type { Row, TableDefinition } from '../../src/declaration/table.ts';
import { loadWindow } from '../../src/load/load-window.ts';
import type { FullSet } from '../../src/load/merge/merge.ts';
import { dataSets, operationNamed } from '../../src/operations/registry.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { DEFAULT_SETTINGS } from '../../src/state/coverage/completeness.ts';
import { takePosition } from '../../src/state/position-sql.ts';
import type { CoverageEntry } from '../../src/state/registers.ts';
import type { RejectEntry } from '../../src/state/rejects.ts';
import { packBody } from '../../src/state/responses/responses.ts';
import { closeAfterFile } from '../support/closing.ts';
import { testDatabase } from '../support/database.ts';
import { positionOf } from '../support/position.ts';

/** A migrated database of the file's own, with a pool on it. */
export async function openStore(adminUrl?: string, connections = 4): Promise<Database> {
  const { url } = await testDatabase(adminUrl);
  return openPool(url, connections);
}

/** One more pool, as another process would have. */
export function openPool(url: string, connections = 4): Database {
  const database = openDatabase({ url, connections });
  closeAfterFile(() => (database.pool.ended ? null : database.close()));
  return database;
}

/** A database with the default settings and the present time, for what reports on runs. */
export const contextOf = (db: Database) => ({ config: DEFAULT_SETTINGS, clock: Date, db });

/** A run for windows to belong to. */
export async function newRun({ pool }: Database): Promise<number> {
  const result = await pool.query<{ id: number }>(
    `insert into etl.runs (kind, requested_by, request, from_date, to_date)
     values ('backfill', 'test', '{}', '2025-01-01', '2025-01-01') returning id::int`,
  );
  return result.rows[0]?.id ?? 0;
}

/** What a window requests. */
interface WindowRequest {
  readonly operation?: string;
  readonly exchange?: string;
  readonly from?: string;
  readonly to?: string;
  readonly instruments?: readonly string[];
  readonly params?: Readonly<Record<string, string>>;
  readonly variant?: string;
  readonly filtered?: boolean;
}

/** An open window. */
export async function newWindow(
  { pool }: Database,
  runId: number,
  state = 'running',
  request: WindowRequest = {},
): Promise<number> {
  const { operation = 'GetBhavCopyCM', exchange = 'NSE', from = '2025-01-01', to = '2025-01-01' } = request;
  const { instruments = [], params = {}, variant = '', filtered = false } = request;
  const result = await pool.query<{ id: number }>(
    `insert into etl.windows (run_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, state)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning id::int`,
    [runId, operation, exchange, from, to, instruments, params, variant, filtered, state],
  );
  return result.rows[0]?.id ?? 0;
}

export interface Response {
  readonly batches: readonly { readonly table: TableDefinition; readonly rows: readonly Row[] }[];
  readonly rejects?: readonly RejectEntry[];
  readonly coverage?: readonly CoverageEntry[];
  /** When it was fetched: now, where nothing is said. */
  readonly fetchedAt?: Date;
  /** Its position: that of the time at which it was fetched, where nothing is said. */
  readonly position?: Position;
  readonly fullSets?: readonly FullSet[];
  readonly runId?: number;
  readonly windowId?: number;
  /** The one that fills its first table, if none is named. */
  readonly operation?: string;
  readonly exchange?: string;
  /** What is kept of it; nothing, where it is not given. */
  readonly body?: Buffer;
}

/** Loads a response as the worker does, in a new window unless one is named. */
export async function load(database: Database, response: Response): Promise<RecordCounts | null> {
  const runId = response.runId ?? (await newRun(database));
  const { batches } = response;
  const exchange = response.exchange ?? String([...(batches[0]?.rows ?? [])][0]?.exchange ?? 'NSE');
  const filling = dataSets.find(({ shapes }) => shapes.some(({ table }) => table === batches[0]?.table));
  const operation = response.operation ?? filling?.name ?? 'GetBhavCopyCM';
  const request = { operation, exchange };
  const windowId = response.windowId ?? (await newWindow(database, runId, 'running', request));
  const fetchedAt = response.fetchedAt ?? new Date();
  const position =
    response.position ??
    (response.fetchedAt === undefined
      ? await takePosition(database.drizzle)
      : positionOf(fetchedAt.getTime()));
  const stored = await loadWindow(database, {
    windowId,
    runId,
    ...request,
    from: '2025-01-01',
    to: '2025-01-01',
    batches: response.batches,
    rejects: response.rejects ?? [],
    coverage: response.coverage ?? [],
    fullSets: response.fullSets ?? [],
    maxWithdrawShare: 0.1,
    position,
    fetchedAt,
    response: {
      packed: response.body === undefined ? null : await packBody(database.drizzle, response.body),
      contentType: null,
      calledOn: '2025-01-01',
    },
    outcome: { state: 'loaded', error: null },
    bytes: 1,
    warnings: [],
    doubts: [],
    readAgain: unkept,
  });
  return stored?.counts ?? null;
}

/** Nothing is kept that could be read again. */
export const unkept = async () => Promise.reject(new Error('no response of these tests is kept'));

export const bhavcopy = operationNamed('GetBhavCopyCM').shapes[0].table;

/** A bhav copy record; what is not named is left out. */
export function bhavRow(changes: Row & { symbol: string }): Row {
  const blank = Object.fromEntries(bhavcopy.fields.map((field) => [field.column, null]));
  return {
    ...blank,
    exchange: 'NSE',
    series: 'EQ',
    trade_date: '2025-08-29',
    close_price: '10.5',
    ...changes,
  };
}

/** Loads bhav copy records. */
export function loadBhav(database: Database, rows: readonly Row[], response: Partial<Response> = {}) {
  return load(database, { batches: [{ table: bhavcopy, rows }], ...response });
}
