import type { RecordCounts } from '../../src/core/record-counts.ts';
import type { ResponseField } from '../../src/declaration/fields.ts';
import type { Operation } from '../../src/declaration/operation.ts';
import type { Row, TableDefinition } from '../../src/declaration/table.ts';
import type { Extracted } from '../../src/extract/types.ts';
import { decideOutcome } from '../../src/jobs/responses/response-outcome.ts';
import { loadWindow } from '../../src/load/load-window.ts';
import type { Database } from '../../src/postgres/database.ts';
import { takePosition } from '../../src/state/position-sql.ts';
import { newRun, newWindow, unkept } from '../load/support.ts';
import { offlineSource, recordsOf, shapeOf } from '../support/expected.ts';

export type SourceRecord = Readonly<Record<string, unknown>>;

/** Replaced by a piece of JSON that JSON.stringify would not write: `1e400`, or lists in lists in lists. */
export const rawJson = (text: string): string => `@raw:${text}@`;

/** Records as the body of a response. */
export function bodyOf(records: readonly unknown[]): string {
  const raw = (_: string, text: string): string => JSON.parse(`"${text}"`) as string;
  return `{"Value":${JSON.stringify(records).replace(/"@raw:([^@]*)@"/g, raw)}}`;
}

/** A record of the operation's own sample. */
export function sampleOf(operation: Operation): SourceRecord {
  return recordsOf(operation.sample.response)[0] ?? {};
}

/** The fields of the sample's shape that a record carries under its own name. */
export function sentFields(operation: Operation): { key: string; field: ResponseField }[] {
  const sample = sampleOf(operation);
  const shape = shapeOf(operation, operation.sample.response);
  return shape.table.fields.flatMap((field) => {
    if (field.from !== 'response') return [];
    const key = Object.keys(sample).find((name) => name.toLowerCase() === field.source.toLowerCase());
    return key === undefined ? [] : [{ key, field }];
  });
}

export interface Loaded {
  readonly windowId: number;
  readonly extracted: Extracted;
  readonly counts: RecordCounts | null;
}

/** Reads a response with the pipeline's extractor and stores it with the real loadWindow. */
export async function loadBody(store: Database, operation: Operation, body: string): Promise<Loaded> {
  const buffer = Buffer.from(body);
  const extracted = offlineSource().read(
    operation,
    { ...operation.sample.requested, calledOn: '2025-02-28' },
    { body: buffer, contentType: 'text/plain', bytes: buffer.length },
  );
  const runId = await newRun(store);
  const windowId = await newWindow(store, runId);
  const stored = await loadWindow(store, {
    windowId,
    runId,
    operation: operation.name,
    exchange: operation.sample.requested.exchange,
    from: '2025-01-01',
    to: '2025-01-01',
    batches: extracted.batches,
    rejects: extracted.rejects,
    coverage: [],
    fullSets: [],
    maxWithdrawShare: 0.1,
    position: await takePosition(store.drizzle),
    fetchedAt: new Date(),
    doubts: [],
    outcome: decideOutcome(extracted, 1),
    bytes: buffer.length,
    warnings: extracted.warnings,
    readAgain: unkept,
  });
  return { windowId, extracted, counts: stored?.counts ?? null };
}

/**
 * Holds the table against the accepted rows, by Postgres' own reading of both: how many stored rows
 * equal none of them in every column, and how many of them have no stored row of their key.
 */
export async function difference(
  store: Database,
  table: TableDefinition,
  accepted: readonly Row[],
): Promise<{ strangers: number; lost: number }> {
  const list = (prefix: string, columns: readonly string[]) =>
    columns.map((column) => `${prefix}."${column}"`).join(', ');
  const all = table.fields.map((field) => field.column);
  const same = (columns: readonly string[]) =>
    `row(${list('t', columns)}) is not distinct from row(${list('a', columns)})`;
  const result = await store.pool.query<{ strangers: number; lost: number }>(
    `with a as materialized (select * from jsonb_populate_recordset(null::market.${table.name}, $1::jsonb))
     select (select count(*)::int from market.${table.name} t where not exists (select from a where ${same(all)})) as strangers,
       (select count(*)::int from a where not exists (select from market.${table.name} t where ${same(table.key)})) as lost`,
    [JSON.stringify([...accepted])],
  );
  return result.rows[0] ?? { strangers: -1, lost: -1 };
}

export interface StoredReject {
  readonly position: number;
  readonly record: unknown;
  readonly problems: readonly { readonly path: string; readonly message: string }[];
}

export async function storedRejects(store: Database, windowId: number): Promise<StoredReject[]> {
  const result = await store.pool.query<StoredReject>(
    'select position, record, problems from etl.rejects where window_id = $1 order by position',
    [windowId],
  );
  return result.rows;
}

/** Empties the tables an operation may write to. */
export async function emptyTables(store: Database, operation: Operation): Promise<void> {
  for (const shape of operation.shapes) await store.pool.query(`delete from market.${shape.table.name}`);
  await store.pool.query('delete from etl.rejected_records');
}
