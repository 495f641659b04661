import type { TableDefinition } from '../declaration/table.ts';
import type { Transaction } from '../postgres/transaction.ts';
import type { Written } from '../state/loads/loads.ts';
import { hasLaterOrOwnLoad } from '../state/responses/to-fold.ts';
import { foldLateResponse, type ResponseOfTable, scopeOfRows } from './fold/fold-late.ts';
import { applyResponse, changedDays, ensureStage, type StoredRows } from './merge/merge.ts';

/** What became of one table's records. */
export interface StoredTable extends StoredRows {
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
export async function storeTable(tx: Transaction, part: ResponseOfTable): Promise<StoredTable> {
  const { table, rows, fullSet } = part;
  await ensureStage(tx.client, table);
  const scope = scopeOfRows(part);
  const isLast = !(await hasLaterOrOwnLoad(tx, scope, part.position));
  const stored = isLast ? await applyResponse(tx.client, part) : await foldLateResponse(tx, part, scope);
  const isChanged = stored.written + stored.withdrawn > 0;
  const changed = isChanged ? { table: table.name, ...changedDays(table, rows, fullSet) } : null;
  return { ...stored, table, changed };
}
