import type { Pool } from 'pg';
import type { FileSession } from '../../extract/files/read-file.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Answered } from '../worker/store.ts';
import { nameRows, symbolsOfDay, type Tickers } from './tickers.ts';

/** The operation whose records the files hold. */
export const IMPORTED = 'GetBhavCopyCM';

/** The table they end in. */
export const importedTable = () => operationNamed(IMPORTED).shapes[0].table;

/**
 * A session of a file as an answer that can be stored, read just now or kept for years.
 *
 * @param tickers looked at only where the file has none of its own.
 */
export async function sessionAnswer(
  pool: Pool,
  session: FileSession,
  tickers: Tickers,
): Promise<Pick<Answered, 'extracted' | 'partial' | 'preserved'>> {
  const { day, rejects } = session;
  const rows = session.numbered
    ? nameRows(session.rows, day, await symbolsOfDay(pool, day), tickers)
    : session.rows;
  return {
    extracted: {
      batches: [{ table: importedTable(), rows }],
      rejects,
      fetched: rows.length + rejects.length,
      warnings: [],
      unknownFields: [],
    },
    partial: !session.complete,
    preserved: { columns: session.unknown, rounded: session.rounded },
  };
}
