import { eachDay } from '../core/days.ts';
import { NO_COUNTS, type RecordCounts } from '../core/record-counts.ts';
import { namesFilling, operationNamed } from '../operations/registry.ts';
import type { Database } from '../postgres/database.ts';
import { transaction } from '../postgres/transaction.ts';
import { writeCoverage } from '../state/coverage/coverage.ts';
import { beginLoad, insertLoad } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { copyResponse, findRepeated } from '../state/responses/repeated.ts';
import { endingWindow } from '../state/windows/windows.ts';
import { mergeSql } from './merge/merge-sql.ts';
import type { ResponseOfWindow } from './window-load.ts';

/**
 * Ends the window of a response that repeats the last one about its days (`findRepeated`), as if it had been read and
 * compared row by row: with the same counts, coverage, kept response and state.
 *
 * @param tradingDays the trading days that were requested: all have to be loaded.
 * @returns the counts; null if the response has to be read, and then nothing was written.
 */
export async function repeatLoad(
  database: Database,
  response: ResponseOfWindow & { readonly digest: string; readonly calledOn: string },
  tradingDays: readonly string[],
): Promise<RecordCounts | null> {
  const { windowId, exchange, bytes } = response;
  const { shapes } = operationNamed(response.operation);
  // Only of these operations it is known without reading that all rows are of the days requested.
  if (!shapes.every((shape) => shape.fullSet === 'days' && shape.dated)) return null;
  const tables = shapes.map(({ table }) => table);
  const requested = { ...response, operations: namesFilling(tables), tradingDays };
  // Without locks first, because nearly always the response is a new one.
  if ((await findRepeated(database.drizzle, requested)) === null) return null;
  return transaction(database, async (tx) => {
    const days = eachDay(response.from, response.to);
    const locks = tables.flatMap(({ name }) => locksOfTable(name, exchange, days));
    const begun = await beginLoad(tx, windowId, locks);
    const last = begun && (await findRepeated(tx, requested));
    if (begun === null || last === null) return null;
    const listed = last.fetched - last.duplicate;
    let stored = 0;
    for (const table of tables) {
      const counted = await tx.client.query<{ rows: number }>(mergeSql(table).countRows, [exchange, days]);
      stored += counted.rows[0]?.rows ?? 0;
    }
    if (stored !== listed) return null;
    const { fetched, stale, duplicate, coverage } = last;
    const counts = { ...NO_COUNTS, fetched, unchanged: listed - stale, stale, duplicate };
    const fetchedAt = response.fetchedAt.toISOString();
    await copyResponse(tx, { ...response, fetchedAt, copiedId: last.responseId });
    await writeCoverage(tx, { ...response, coverage });
    const ended = { state: 'loaded', error: null, warnings: [], suspicious: null, unsettled: null } as const;
    const ending = endingWindow(tx, windowId, { ...ended, counts, bytes });
    await insertLoad(tx, { ...response, ...begun, written: [] }, ending);
    return counts;
  });
}
