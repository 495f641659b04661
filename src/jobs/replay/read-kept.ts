import { dayAt } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { type FileSession, readCsvFile } from '../../extract/files/read-file.ts';
import { readAnswer } from '../../extract/index.ts';
import type { Extracted } from '../../extract/types.ts';
import { readTickers, type Tickers } from '../../load/market/lookups.ts';
import { openRejectsOfWindow } from '../../load/state/rejects.ts';
import type { KeptAnswer } from '../../load/state/responses/kept.ts';
import { replayReached } from '../../load/state/responses/to-replay.ts';
import type { ReplayWindow } from '../../load/state/windows/windows.ts';
import { isOperation } from '../../operations/operation.ts';
import { dataSetNamed, operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { NO_TICKERS, type ReadAnswer, sessionAnswer } from '../import/session-answer.ts';

/** The settings that kept answers are read with. */
function readSettings({ EOD_ACCESS_KEY, EOD_TIMEZONE }: Context['config']) {
  return { accessKey: EOD_ACCESS_KEY ?? '', timeZone: EOD_TIMEZONE };
}

/** Reads a kept answer of the source with the code of today. @throws PipelineError `unreadable` */
export function readKeptSource({ config }: Context, kept: KeptAnswer): Extracted {
  return readAnswer(
    operationNamed(kept.operation),
    kept,
    { body: kept.body, contentType: kept.contentType, bytes: 0 },
    readSettings(config),
  );
}

/** The data set of files without tickers. */
const BHAV_COPY = 'GetBhavCopyCM';

/** Reads the files that are kept among the answers of one replay. */
export interface FileReader {
  /** @throws PipelineError `unreadable` if the file, as it is read today, does not hold the window's session. */
  read(window: ReplayWindow, kept: KeptAnswer): Promise<ReadAnswer>;
}

/**
 * The file that was read last is remembered, because a file of many sessions is asked for once for each
 * of them. So are the tickers of one import, whose files follow one another.
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
      // The import saw the rows that this replay loaded before it reached that moment. When that was is
      // read from the windows, so that a replay that was interrupted finds the same.
      const asked = { runId, operation: BHAV_COPY, exchange: 'BSE', loadedAt: asOf };
      last = { asOf, tickers: await readTickers(db.pool, await replayReached(db.drizzle, asked)) };
    }
    return last.tickers;
  };
  return {
    async read(window, kept) {
      const session = sessionOf(sessionsOf(kept), kept);
      if (session === undefined) throw noSession(kept);
      const tickers = session.withoutTickers
        ? await tickersFor(window.runId, window.params.tickers)
        : NO_TICKERS;
      return sessionAnswer(db.pool, session, tickers);
    },
  };
}

/** Reads a kept file. @throws PipelineError `unreadable` */
export function readKept({ config }: Context, { file, body }: KeptAnswer): FileSession[] {
  return readCsvFile(file ?? '', body, config.EOD_TIMEZONE);
}

/** The session a kept file was loaded for, among those it holds. */
export function sessionOf(sessions: readonly FileSession[], kept: KeptAnswer): FileSession | undefined {
  return sessions.find(
    ({ dataSet, exchange, day }) =>
      dataSet === kept.operation && exchange === kept.exchange && day === kept.from,
  );
}

function noSession({ file, exchange, from }: KeptAnswer): PipelineError {
  return new PipelineError(
    `${file}, as it is read today, holds no session ${from} of ${exchange}; if that is right, import the file again by force`,
    { kind: 'unreadable' },
  );
}

/** Marks in stored records where something was left out; see extract/sanitize.ts. */
const SHORTENED = '…';

/**
 * Reads the open rejects of the window's parent again, from the records as they were stored, because the
 * answer is not kept. Rows of files cannot be read alone and stay rejected. Records that were shortened for storing stay rejected, because they are not
 * complete, and so do those of tables whose rows depend on their place in the answer.
 */
export async function readRejectedRecords(
  { db, config }: Context,
  window: ReplayWindow,
): Promise<{ extracted: Extracted; seenAt: number }> {
  const rejected = window.parentId === null ? [] : await openRejectsOfWindow(db.drizzle, window.parentId);
  const dataSet = dataSetNamed(window.operation);
  const seenAt = rejected[0]?.seenAt.getTime() ?? Date.now();
  const needsPlaces = dataSet.shapes.some(({ table }) =>
    table.fields.some((field) => field.from === 'derived' && field.value.length > 1),
  );
  const whole = (one: { readonly record: unknown }) =>
    isOperation(dataSet) && !needsPlaces && !JSON.stringify(one.record).includes(SHORTENED);
  const readable = rejected.filter(whole);
  const extracted = isOperation(dataSet)
    ? readAnswer(
        dataSet,
        { ...window, calledOn: dayAt(Math.floor(seenAt / 1000), config.EOD_TIMEZONE) },
        { body: Buffer.from(JSON.stringify(readable.map((one) => one.record))), contentType: null, bytes: 0 },
        readSettings(config),
      )
    : { batches: [], rejects: [], warnings: [], unknownFields: [] };
  const rejects = [
    ...extracted.rejects.map((reject) => ({
      ...reject,
      position: readable[reject.position]?.position ?? reject.position,
    })),
    ...rejected
      .filter((one) => !whole(one))
      .map(({ seenAt: _, day, ...reject }) => ({ ...reject, ...(day === null ? {} : { day }) })),
  ];
  return { extracted: { ...extracted, rejects, fetched: rejected.length }, seenAt };
}
