import { dayAt } from '../../core/days.ts';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { fileOrder } from '../../core/file-order.ts';
import { windowFacts } from '../../core/log.ts';
import type { Position } from '../../core/position.ts';
import { NO_COUNTS, type RecordCounts } from '../../core/record-counts.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import { listText } from '../../core/wording.ts';
import { badFile } from '../../extract/diagnostics.ts';
import { dayOfName } from '../../extract/files/formats.ts';
import { readExchangeFile, type UnknownFile } from '../../extract/files/read-exchange-file.ts';
import type { FilePart } from '../../extract/files/read-file.ts';
import { MOST_BYTES, takeBytes, type UnpackLimit } from '../../extract/files/unpack.ts';
import type { Tickers } from '../../load/stored-values.ts';
import { pairTitle } from '../../operations/registry.ts';
import { readStoredLoad } from '../../state/loads/loads.ts';
import { takePositions } from '../../state/position-sql.ts';
import { positionOfFile, ROOM_BEFORE_FILE } from '../../state/responses/files-of-session.ts';
import { packBody } from '../../state/responses/responses.ts';
import { type FileWindow, insertFileWindows, reserveWindowIds } from '../../state/windows/plan.ts';
import type { Context } from '../context.ts';
import { createResponseReader } from '../responses/read-response.ts';
import { countRecordsByTable, partResponse, symbolsFor } from '../responses/session-response.ts';
import { storeResponse } from '../responses/store-response.ts';
import { applyLocalFailure } from '../worker/apply-failure.ts';
import { type ImportFile, readImportFile } from './files.ts';

/** What a file had of one format. An archive may have files of several. */
export interface FormatReport {
  readonly format: string;
  /** Trading days, or lists. */
  readonly sessions: number;
  /** Records of parts that were loaded; a line may have two. */
  readonly records: number;
  readonly rejected: number;
  /** Lines that are about nothing that is stored. */
  readonly passedOver: number;
  /** The tables that it fills. */
  readonly tables: readonly string[];
}

/** The result for one file. */
export interface FileReport extends Omit<RecordCounts, 'fetched'> {
  readonly file: string;
  /** The format, or null if it is unknown; for an archive, the formats of all its files. */
  readonly format: string | null;
  readonly sessions: readonly { readonly exchange: string; readonly day: string }[];
  /** Number of records, of which a line may have two: the sum of the other counts, without `withdrawn`. */
  readonly rows: number;
  /** Number of records for each table, without rejects: a line may be a price and a delivery. */
  readonly tables: Readonly<Record<string, number>>;
  /** The same by format, with what was passed over. */
  readonly formats: readonly FormatReport[];
  /** `unknown`: it has no known format. */
  readonly state: 'loaded' | 'skipped' | 'unknown' | 'failed';
  /** Why it was not loaded. */
  readonly error: string | null;
  /** Of an unknown file: how its header begins, or its segment. */
  readonly form: string | null;
  /** The files of unknown form in an archive of which others were loaded. */
  readonly leftOut: readonly UnknownFile[];
}

const { fetched: _, ...NO_RECORDS } = NO_COUNTS;

/** The report of a file that was not loaded. */
export function notLoaded(
  file: string,
  state: 'skipped' | 'unknown' | 'failed',
  error: string,
  form: string | null = null,
): FileReport {
  return {
    file,
    format: null,
    sessions: [],
    rows: 0,
    ...NO_RECORDS,
    tables: {},
    formats: [],
    state,
    error,
    form,
    leftOut: [],
  };
}

/**
 * Reads a file. Whatever goes wrong is a problem of this file, named with it: the others are imported.
 *
 * @param limit the bytes that it may take.
 * @param leftOut gets the files of unknown form of an archive.
 * @throws PipelineError `unreadable`
 */
export async function readParts(
  { config }: Context,
  { path, absolutePath }: ImportFile,
  limit: UnpackLimit,
  leftOut: UnknownFile[],
): Promise<FilePart[]> {
  const bytes = await readImportFile(absolutePath, (size) =>
    takeBytes(limit, size, `has ${size} bytes; at most ${MOST_BYTES} of a file are read`),
  );
  try {
    const leaveOut = ({ file, form }: UnknownFile) => leftOut.push({ file: `${path}/${file}`, form });
    return await readExchangeFile(path, bytes, config.EOD_TIMEZONE, limit, leaveOut);
  } catch (error) {
    if (error instanceof PipelineError) throw error;
    throw badFile(`cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Stores the parts of a file, each in a window and a transaction of its own, and keeps the CSV that they were
 * read from. If Postgres refuses rows, the file is reported as failed.
 *
 * @param tickers for rows that have none: the same for all files of an import.
 * @returns its report; `cancelled`: the run was cancelled before the whole file was loaded.
 * @throws PipelineError `database_unreachable` if Postgres stays unreachable.
 */
export async function importParts(
  context: Context,
  runId: number,
  file: ImportFile,
  parts: readonly FilePart[],
  tickers: Tickers,
): Promise<{ readonly report: FileReport; readonly cancelled: boolean }> {
  const windows = await openFileWindows(context, runId, file, parts);
  const positions = await takePositions(context.db.drizzle, windows.length, ROOM_BEFORE_FILE);
  const pack = createPacker(context);
  const readKept = createResponseReader(context);
  const sums = { rows: 0, ...NO_RECORDS };
  const tables: Record<string, number> = {};
  const formats = new Map<string, FormatReport>();
  const problems: string[] = [];
  const loaded: string[] = [];
  const namePart = createPartNames(parts);
  let cancelled = windows.length === 0;
  for (const [at, window] of windows.entries()) {
    const part = parts[at] as FilePart;
    const position = positions[at] as Position;
    const load = { file, window, position, part, tickers, readKept, packed: pack(part) };
    const times: StepTimes = {};
    const stored = await timeStep(times, 'load', () => importPart(context, load)).catch(async (error) => {
      problems.push(await applyLocalFailure(context, window.id, error));
      return undefined;
    });
    if (stored === undefined) continue;
    if (stored === null) {
      cancelled = true;
      break;
    }
    const { counts, outcome } = stored;
    const facts = { ...windowFacts(window), file: file.path };
    // At `debug`, because years of files would be thousands of lines.
    context.log.debug({ ...facts, counts, ms: times }, 'part of a file loaded');
    if (outcome.state === 'failed') problems.push(`${namePart(part)}: ${outcome.error}`);
    else loaded.push(namePart(part));
    sums.rows += counts.fetched;
    for (const { table, rows } of countRecordsByTable(part))
      tables[table.name] = (tables[table.name] ?? 0) + rows;
    formats.set(part.format, addToFormat(formats.get(part.format), part, counts.rejected));
    for (const name of Object.keys(NO_RECORDS) as (keyof typeof NO_RECORDS)[]) sums[name] += counts[name];
  }
  const report: FileReport = {
    file: file.path,
    format: [...new Set(parts.map((part) => part.format))].join(', '),
    sessions: parts.map(({ exchange, day }) => ({ exchange, day })),
    ...sums,
    tables,
    formats: [...formats.values()],
    state: problems.length === 0 ? 'loaded' : 'failed',
    error: problems.length === 0 ? null : [...problems, ...loadedText(loaded)].join('; '),
    form: null,
    leftOut: [],
  };
  return { report, cancelled };
}

/** @returns a function that names a part of a file by exchange and day, and by its data set if the file has several. */
function createPartNames(parts: readonly FilePart[]) {
  const isOneDataSet = new Set(parts.map(({ dataSet }) => dataSet)).size === 1;
  return ({ dataSet, exchange, day }: FilePart) =>
    `${isOneDataSet ? exchange : pairTitle({ operation: dataSet, exchange })} ${day}`;
}

/** What of a file was loaded although something else of it was not, such as `loaded of it: NSE 2025-08-28`. */
const loadedText = (loaded: readonly string[]): string[] =>
  loaded.length === 0 ? [] : [`loaded of it: ${listText([...new Set(loaded)], ', ')}`];

function addToFormat(before: FormatReport | undefined, part: FilePart, rejected: number): FormatReport {
  const recordsByTable = countRecordsByTable(part);
  return {
    format: part.format,
    sessions: (before?.sessions ?? 0) + 1,
    records: (before?.records ?? 0) + recordsByTable.reduce((sum, { rows }) => sum + rows, 0),
    rejected: (before?.rejected ?? 0) + rejected,
    passedOver: (before?.passedOver ?? 0) + part.passedOver,
    tables: [...new Set([...(before?.tables ?? []), ...recordsByTable.map(({ table }) => table.name)])],
  };
}

/**
 * Writes a window for each part of a file before the first is loaded, so that a file that was not loaded
 * completely is recognized and imported again. `params` has what a replay needs.
 *
 * @returns the windows; none if the run was cancelled.
 */
async function openFileWindows(
  { db }: Context,
  runId: number,
  file: ImportFile,
  parts: readonly Pick<FilePart, 'dataSet' | 'exchange' | 'day' | 'to' | 'content' | 'rank'>[],
): Promise<FileWindow[]> {
  return insertFileWindows(db.drizzle, runId, {
    ids: await reserveWindowIds(db.drizzle, parts.length),
    file: file.path,
    hash: file.hash,
    parts: parts.map(({ dataSet, exchange, day, to, content, rank }) => ({
      operation: dataSet,
      exchange,
      from: day,
      to,
      params: { file: content.name, ...(rank === null ? {} : { rank: String(rank) }) },
      // A list says nothing of the days between those of its rows.
      filtered: rank === null,
    })),
  });
}

/** Where a part of a file stands among other files of it; undefined for a list whose name has no day. */
function computeOrder({ rank, content }: FilePart, { path }: ImportFile) {
  const order = fileOrder(rank, content.name, path);
  return rank === null && order.day === '' ? undefined : order;
}

type Packed = ReturnType<typeof packBody>;

/**
 * @returns a function that compresses the CSV of a part; consecutive parts of the same CSV share the
 * result.
 */
function createPacker({ db }: Context): (part: FilePart) => Packed {
  let last: { readonly content: FilePart['content']; readonly packed: Packed } | undefined;
  return ({ content }) => {
    if (last?.content !== content) {
      last = { content, packed: packBody(db.drizzle, content.bytes) };
      last.packed.catch(() => undefined);
    }
    return last.packed;
  };
}

interface Load {
  readonly file: ImportFile;
  readonly window: FileWindow;
  readonly position: Position;
  readonly part: FilePart;
  readonly tickers: Tickers;
  readonly packed: Packed;
  readonly readKept: ReturnType<typeof createResponseReader>;
}

async function importPart(
  context: Context,
  { file, window, position, part, tickers, readKept, packed }: Load,
): ReturnType<typeof storeResponse> {
  const { calendar, clock, config, db } = context;
  const calledAt = clock.now();
  const calledOn = dayAt(Math.floor(calledAt / 1000), config.EOD_TIMEZONE);
  const symbols = await symbolsFor(db.pool, part, tickers);
  const read = partResponse(part, symbols);
  const order = computeOrder(part, file);
  const odd = part.rows.length > 0 && dayOfName(file.path)?.day === part.day ? file.warning : undefined;
  // The calendar without what prices have shown: else the order of files would decide.
  const isClosed = part.rank !== null && !calendar.listed.isTradingDay(part.exchange, part.day);
  const ofDay = [
    ...(odd === undefined ? [] : [odd]),
    ...(isClosed
      ? [
          `${nameInFile(part.content.name, file.path)}: ${part.day} is no trading day of ${part.exchange} in the calendar`,
        ]
      : []),
  ];
  const stored = await storeResponse(context, {
    window,
    ...read,
    extracted: { ...read.extracted, warnings: [...read.extracted.warnings, ...ofDay] },
    position,
    positionAmongFiles: order && ((tx) => positionOfFile(tx, { ...window, position, fileOrder: order })),
    calledAt,
    bytes: 0,
    readKept,
    response: {
      packed: await packed,
      contentType: 'text/csv',
      calledOn,
      symbols: part.withoutTickers ? symbols : null,
    },
  });
  // Stored before the connection broke, or cancelled.
  return stored ?? readStoredLoad(db.drizzle, window.id);
}

/** The path of a file, and its name in an archive that is called otherwise. */
const nameInFile = (name: string, path: string) =>
  path.toLowerCase().includes(name.toLowerCase()) ? path : `${name} in ${path}`;
