import { PipelineError } from '../../core/errors.ts';
import { type FileSession, readBhavFile } from '../../extract/files/read-file.ts';
import type { KeptAnswer } from '../../load/state/responses.ts';
import type { ReplayWindow } from '../../load/state/windows.ts';
import type { Context } from '../context.ts';
import { IMPORTED, sessionAnswer } from '../import/session.ts';
import { knownTickers, NO_TICKERS, type Tickers } from '../import/tickers.ts';
import type { Answered } from '../worker/store.ts';

/** A kept session of a file, read with the code of today. */
export type FileAnswer = Pick<Answered, 'extracted' | 'partial' | 'standing'>;

/** Reads the files that are kept among the answers of one replay. */
export interface FileReader {
  /** @throws PipelineError `unreadable` where today's reading does not find the session of the window. */
  read(window: ReplayWindow, kept: KeptAnswer): Promise<FileAnswer>;
}

/**
 * Remembers the file read last, because a file of many sessions comes once for each, and the tickers
 * of one import: its files stand one behind the other.
 */
export function createFileReader(context: Context): FileReader {
  const { db } = context;
  let file: { readonly name: string; readonly sessions: readonly FileSession[] } | undefined;
  const sessionsOf = (kept: KeptAnswer): readonly FileSession[] => {
    const name = `${kept.hash} ${kept.file}`;
    if (file?.name !== name) file = { name, sessions: readKept(context, kept) };
    return file.sessions;
  };
  let last: { readonly asOf: string; readonly tickers: Tickers } | undefined;
  const tickersFor = async (runId: number, asOf: string | undefined): Promise<Tickers> => {
    if (asOf === undefined) return knownTickers(db.pool);
    if (last?.asOf !== asOf)
      last = { asOf, tickers: await knownTickers(db.pool, await reached(context, runId, asOf)) };
    return last.tickers;
  };
  return {
    async read(window, kept) {
      const session = sessionOf(sessionsOf(kept), kept);
      if (session === undefined) throw noSession(kept);
      const tickers = session.numbered ? await tickersFor(window.runId, window.params.tickers) : NO_TICKERS;
      return sessionAnswer(db.pool, session, tickers);
    },
  };
}

/** Reads a kept file. @throws PipelineError `unreadable` */
export function readKept({ config }: Context, { file, body }: KeptAnswer): FileSession[] {
  return readBhavFile(file ?? '', body, config.EOD_TIMEZONE);
}

/** The session a kept file was loaded for, among those it holds. */
export function sessionOf(sessions: readonly FileSession[], kept: KeptAnswer): FileSession | undefined {
  return sessions.find(({ exchange, day }) => exchange === kept.exchange && day === kept.from);
}

/**
 * When this replay came to what was loaded at that moment: rows first loaded before are those the
 * import saw. Asked of the windows, so that a replay that was stopped finds the same.
 */
async function reached({ db }: Context, runId: number, moment: string): Promise<string | null> {
  const found = await db.pool.query<{ at: string | null }>(
    `select min(w.started_at)::text as at from etl.windows w join etl.responses r on r.id = w.response_id
      where w.run_id = $1 and w.operation = $2 and w.exchange = 'BSE' and r.loaded_at >= $3`,
    [runId, IMPORTED, moment],
  );
  return found.rows[0]?.at ?? null;
}

function noSession({ file, exchange, from }: KeptAnswer): PipelineError {
  return new PipelineError(
    `${file}, as it is read today, holds no session ${from} of ${exchange}; if that is right, import the file with --force`,
    { kind: 'unreadable', retryable: false },
  );
}
