import { eachDay } from '../core/days.ts';
import { NO_COUNTS, type RecordCounts } from '../core/record-counts.ts';
import { namesFilling, operationNamed } from '../operations/registry.ts';
import type { Database } from '../postgres/database.ts';
import { transaction } from '../postgres/transaction.ts';
import { writeCoverage } from '../state/coverage/coverage.ts';
import { beginLoad, insertLoads } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { selectRepeated } from '../state/responses/repeated.ts';
import { buildFact } from '../state/responses/response-facts.ts';
import { keepResponse, keptBody } from '../state/responses/responses.ts';
import { endingWindow } from '../state/windows/windows.ts';
import type { ResponseOfWindow } from './window-load.ts';

/**
 * Ends the window of a response that repeats the last one about its days without reading it: with the same counts,
 * coverage, kept response and state as if it had been read and compared row by row.
 *
 * @returns the counts; null if it does not repeat it and has to be read: then nothing was written.
 */
export async function repeatLoad(
  database: Database,
  response: ResponseOfWindow & { readonly digest: string },
  calledOn: string,
): Promise<RecordCounts | null> {
  const { windowId, operation, exchange, from, to, digest, position, fetchedAt, bytes } = response;
  const tables = operationNamed(operation).shapes.map(({ table }) => table);
  const repeated = { digest, position, operation, exchange, to, operations: namesFilling(tables) };
  // Without locks first, because a response that is requested for the first time is a new one.
  if ((await selectRepeated(database.drizzle, repeated)).rowCount === 0) return null;
  return transaction(database, async (tx) => {
    const locks = tables.flatMap(({ name }) => locksOfTable(name, exchange, eachDay(from, to)));
    const begun = await beginLoad(tx, windowId, locks);
    const [last] = (await selectRepeated(tx, repeated)).rows;
    if (begun === null || last === undefined) return null;
    const { fetched, stale, duplicate, coverage, contentType } = last;
    const fact = buildFact({ coverage, outcome: { state: 'loaded' }, doubts: [] }, begun);
    const packed = keptBody(last.hash);
    await keepResponse(tx, windowId, { position, fetchedAt, fact, packed, contentType, calledOn });
    await writeCoverage(tx, { ...response, coverage });
    const counts = { ...NO_COUNTS, fetched, unchanged: fetched - stale - duplicate, stale, duplicate };
    const ending = endingWindow(tx, windowId, { state: 'loaded', counts, bytes });
    const { loadId } = begun;
    await insertLoads(tx, windowId, [{ loadId, position, fetchedAt, digest, counts, written: [] }], ending);
    return counts;
  });
}
