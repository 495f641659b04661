import type { ClientBase } from 'pg';
import type { Row, TableDefinition } from '../../operations/table.ts';
import { mergeSql } from './merge-sql.ts';

/** Fewer new rows than this are not worth a query. */
const WORTHWHILE = 1_000;

/**
 * Reads the days just written once more. Whoever reads a new row first notes on its page that it is
 * committed. Right after the load that is free; once a checkpoint has passed, each page with a note goes into
 * the WAL as a whole where pages carry checksums (the default since Postgres 18), so that an identical
 * reload would write two thirds of what the load wrote (docs/performance.md).
 */
export async function settle(
  client: ClientBase,
  batch: { readonly table: TableDefinition; readonly rows: readonly Row[] },
  exchange: string,
  written: number,
): Promise<void> {
  const { dateColumn } = batch.table;
  if (dateColumn === null || written < WORTHWHILE) return;
  const days = [...new Set(batch.rows.map((row) => row[dateColumn]))];
  await client.query(mergeSql(batch.table).settle, [exchange, days]);
}
