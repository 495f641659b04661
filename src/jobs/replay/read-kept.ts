import { dayAt } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { type FileSession, readBhavCsv } from '../../extract/files/read-file.ts';
import { readAnswer } from '../../extract/index.ts';
import type { Extracted } from '../../extract/types.ts';
import { readTickers, type Tickers } from '../../load/market/lookups.ts';
import { openRejectsOfWindow } from '../../load/state/rejects.ts';
import { type KeptAnswer, replayReached } from '../../load/state/responses.ts';
import type { ReplayWindow } from '../../load/state/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { IMPORTED, NO_TICKERS, sessionAnswer } from '../import/sessions.ts';
import type { Answered } from '../worker/store.ts';

/** A kept answer, or session of a file, read with the code of today. */
export type ReadAnswer = Pick<Answered, 'extracted' | 'partial' | 'preserved'>;

/** The settings with which kept answers are read. */
export function readSettings({ EOD_ACCESS_KEY, EOD_TIMEZONE }: Context['config']) {
  return { accessKey: EOD_ACCESS_KEY ?? '', timeZone: EOD_TIMEZONE };
}

/** Reads the files that are kept among the answers of one replay. */
export interface FileReader {
  /** @throws PipelineError `unreadable` where today's reading does not find the session of the window. */
  read(window: ReplayWindow, kept: KeptAnswer): Promise<ReadAnswer>;
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
    if (asOf === undefined) return readTickers(db.pool);
    if (last?.asOf !== asOf) {
      // Rows first loaded before the replay came to that moment are those the import saw. Asked of the
      // windows, so that a replay that was stopped finds the same.
      const asked = { runId, operation: IMPORTED, exchange: 'BSE', loadedAt: asOf };
      last = { asOf, tickers: await readTickers(db.pool, await replayReached(db.drizzle, asked)) };
    }
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
  return readBhavCsv(file ?? '', body, config.EOD_TIMEZONE);
}

/** The session a kept file was loaded for, among those it holds. */
export function sessionOf(sessions: readonly FileSession[], kept: KeptAnswer): FileSession | undefined {
  return sessions.find(({ exchange, day }) => exchange === kept.exchange && day === kept.from);
}

function noSession({ file, exchange, from }: KeptAnswer): PipelineError {
  return new PipelineError(
    `${file}, as it is read today, holds no session ${from} of ${exchange}; if that is right, import the file again by force`,
    { kind: 'unreadable', retryable: false },
  );
}

/** Stands in stored records where something was left out; see extract/sanitize.ts. */
const SHORTENED = '…';

/**
 * Reads open rejects of the window's parent again, from the records as they were stored, because
 * the answer is not kept. Those that were shortened for storing stay refused: what is missing
 * cannot be made up. So do those of tables that count places in an answer.
 */
export async function readRefusedRecords(
  { db, config }: Context,
  window: ReplayWindow,
): Promise<{ extracted: Extracted; refusedAt: number }> {
  const refused = window.parentId === null ? [] : await openRejectsOfWindow(db.drizzle, window.parentId);
  const operation = operationNamed(window.operation);
  const refusedAt = refused[0]?.rejectedAt.getTime() ?? Date.now();
  const counts = operation.shapes.some(({ table }) =>
    table.fields.some((field) => field.from === 'derived' && field.value.length > 1),
  );
  const whole = (one: { readonly record: unknown }) =>
    !counts && !JSON.stringify(one.record).includes(SHORTENED);
  const readable = refused.filter(whole);
  const extracted = readAnswer(
    operation,
    { ...window, calledOn: dayAt(Math.floor(refusedAt / 1000), config.EOD_TIMEZONE) },
    { body: Buffer.from(JSON.stringify(readable.map((one) => one.record))), contentType: null, bytes: 0 },
    readSettings(config),
  );
  const rejects = [
    ...extracted.rejects.map((reject) => ({
      ...reject,
      position: readable[reject.position]?.position ?? reject.position,
    })),
    ...refused
      .filter((one) => !whole(one))
      .map(({ position, record, problems }) => ({ position, record, problems })),
  ];
  return { extracted: { ...extracted, rejects, fetched: refused.length }, refusedAt };
}
