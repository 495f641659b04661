import { eachDay } from '../../core/days.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { namesFilling, operationNamed } from '../../operations/registry.ts';
import type { Database } from '../database/database.ts';
import { databaseError } from '../database/database-errors.ts';
import { transaction } from '../database/transaction.ts';
import { coverageOfWindow, writeCoverage } from '../state/coverage/coverage.ts';
import { beginLoad, insertLoad } from '../state/loads/loads.ts';
import { locksOfTable } from '../state/loads/locks.ts';
import { lastCleanLoad } from '../state/loads/other-loads.ts';
import { factOf } from '../state/responses/response-facts.ts';
import { keepResponse } from '../state/responses/responses.ts';
import { endingWindow } from '../state/windows/windows.ts';
import type { ReceivedResponse } from './load-window.ts';
import { mergeSql } from './merge/merge-sql.ts';

/** A response that may be byte for byte the one that was loaded last. */
interface RepeatedResponse extends ReceivedResponse {
  readonly digest: string;
  /** The sessions that were requested. */
  readonly sessions: readonly string[];
}

/**
 * Ends a window without reading its response, if what it says is stored already: the last load of its days was of the
 * same response to the same requests, none of its records was rejected, all sessions that were requested are loaded,
 * and as many rows are stored as it listed. This is no longer so after any other load that may be about these days,
 * whatever operation, import or replay it is of, nor after a change of the code that reads responses. The window ends
 * as if the response had been read and compared row by row: with the same counts, coverage, kept response and state.
 *
 * @returns the counts; null if the response has to be read, and then nothing was written.
 * @throws PipelineError of kind `database` or `database_unreachable`.
 */
export async function repeatLoad(
  database: Database,
  repeated: RepeatedResponse,
): Promise<RecordCounts | null> {
  const { exchange, windowId, digest, position, sessions } = repeated;
  const operation = operationNamed(repeated.operation);
  // Only of these operations it is known without reading that all rows are of the days requested.
  if (!operation.shapes.every((shape) => shape.fullSet === 'days' && shape.dated)) return null;
  const tables = operation.shapes.map(({ table }) => table).sort((a, b) => (a.name < b.name ? -1 : 1));
  const requested = {
    windowId,
    digest,
    position,
    operations: namesFilling(tables),
  };
  try {
    // Checked without locks first, because nearly always the response is a new one.
    if ((await lastCleanLoad(database.drizzle, requested)) === null) return null;
    return await transaction(database, async (tx) => {
      const days = eachDay(repeated.from, repeated.to);
      const rows = tables.flatMap((table) => locksOfTable(table.name, exchange, days));
      const begun = await beginLoad(tx, windowId, rows);
      if (begun === null) return null;
      const last = await lastCleanLoad(tx, requested);
      if (last === null) return null;
      let stored = 0;
      for (const table of tables) {
        const counted = await tx.client.query<{ rows: number }>(mergeSql(table).countRows, [exchange, days]);
        stored += counted.rows[0]?.rows ?? 0;
      }
      const listed = last.fetched - last.duplicate;
      const coverage = await coverageOfWindow(tx, { ...repeated, windowId: last.windowId });
      const isLoaded =
        coverage.length === sessions.length &&
        coverage.every(({ day, state }) => state === 'loaded' && sessions.includes(day));
      if (stored !== listed || !isLoaded) return null;
      const { fetched, stale, duplicate } = last;
      const counts = { ...NO_COUNTS, fetched, unchanged: listed - stale, stale, duplicate };
      const load = {
        ...repeated,
        coverage,
        outcome: { state: 'loaded', error: null },
        resolvesRejects: true,
      } as const;
      if (load.response !== undefined) {
        await keepResponse(tx, windowId, {
          ...load.response,
          position,
          fetchedAt: load.fetchedAt,
          fact: factOf(load, begun),
          resolvesRejects: true,
        });
      }
      await writeCoverage(tx, load);
      const ending = endingWindow(tx, windowId, {
        ...load.outcome,
        counts,
        bytes: load.bytes,
        warnings: [],
        suspicious: null,
        unsettled: null,
      });
      await insertLoad(tx, { ...load, ...begun, written: [] }, ending);
      return counts;
    });
  } catch (error) {
    throw databaseError(error);
  }
}
