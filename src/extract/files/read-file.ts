import { basename } from 'node:path';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { type DataSet, EXCHANGES, exchangeNamed } from '../../operations/operation.ts';
import { dataSetNamed, dataSets } from '../../operations/registry.ts';
import type { Rows } from '../../operations/rows.ts';
import type { Row, TableDefinition } from '../../operations/table.ts';
import { decodeText } from '../body.ts';
import { readCsv } from '../csv.ts';
import { badFile } from '../diagnostics.ts';
import { checkHeapRoom } from '../heap-room.ts';
import { createRecordReader, type RecordReader, type RecordResult } from '../records.ts';
import { sanitizeRecord } from '../sanitize.ts';
import type { Problem, Reject } from '../types.ts';
import { columnsOf, type FileColumns, type FileRow } from './columns.ts';
import { isDeliveryPositions, readDeliveryPositions } from './delivery-positions.ts';
import { dayInName, type FileFormat, FORMATS, type FormatName, SYMBOL_CHANGES_HEADER } from './formats.ts';
import { gunzipFile, isGzip } from './gzip.ts';
import { type ReadRow, type SourceRow, scanFile } from './scan-file.ts';
import { isZip, newUnpackLimit, refuseOtherContainers, type UnpackLimit, unzip } from './zip.ts';

/** The file that a session was read from: the imported one, or one in an archive. */
export interface FileContent {
  readonly name: string;
  readonly bytes: Buffer;
}

/** The rows of a file for one exchange and, if it has rows of sessions, one session; validated like an answer. */
export interface FileSession {
  readonly format: FormatName;
  /** The data set that its rows are records of. */
  readonly dataSet: string;
  readonly exchange: string;
  /** The session, or the first day of a list. */
  readonly day: string;
  /** The same session, or the last day of a list. */
  readonly to: string;
  readonly rows: Rows;
  /** What its rows have for another table. */
  readonly also: { readonly table: TableDefinition; readonly rows: Rows } | null;
  readonly rejects: readonly Reject[];
  /** Is this everything that the exchange traded on that day? */
  readonly complete: boolean;
  /** Are its symbols scrip codes, because the file has no tickers? */
  readonly withoutTickers: boolean;
  /** Columns that the file lacks: their stored values are kept. */
  readonly unknown: readonly string[];
  /** Columns that the file rounds: a stored value that differs by less than this is kept. */
  readonly rounded: Readonly<Record<string, number>>;
  /** Columns that it may leave blank although there is a value: then the stored value is kept. */
  readonly sometimesBlank: readonly string[];
  /** Problems of the file that are not fatal. */
  readonly warnings: readonly string[];
  /** The same object for all sessions of a file; `readCsvFile` of its name and bytes returns the same sessions. */
  readonly content: FileContent;
}

/**
 * Reads a file of an exchange, which gzip may have compressed, or a zip archive of such files. Its sessions follow from
 * the rows, or from its name if the format has no date. A broken file is not read in part.
 *
 * @throws PipelineError `unreadable` that says what is wrong with the file.
 */
export async function readExchangeFile(
  name: string,
  bytes: Buffer,
  timeZone: string,
  limit = newUnpackLimit(),
): Promise<FileSession[]> {
  return readContent(name, bytes, { timeZone, limit, archives: 0 });
}

interface ReadOptions {
  readonly timeZone: string;
  readonly limit: UnpackLimit;
  /** How many archives are around it. */
  readonly archives: number;
}

/** NSE's downloads of several reports are archives that contain archives. */
const MAX_ARCHIVES = 2;

/** Reads a file, or what an archive or gzip data contains. */
async function readContent(name: string, bytes: Buffer, options: ReadOptions): Promise<FileSession[]> {
  const isCompressed = isGzip(bytes);
  const data = isCompressed ? await gunzipFile(bytes, options.limit) : bytes;
  if (!isZip(data))
    return readCsvFile(isCompressed ? name.replace(/\.gz$/i, '') : name, data, options.timeZone);
  if (options.archives === MAX_ARCHIVES)
    throw badFile('is an archive within two others; unpack the outer ones');
  return readArchive(data, { ...options, archives: options.archives + 1 });
}

async function readArchive(bytes: Buffer, options: ReadOptions): Promise<FileSession[]> {
  const sessions: FileSession[] = [];
  let entries = 0;
  let unknown: PipelineError | undefined;
  for await (const { name, data } of unzip(bytes, isImportName, options.limit)) {
    entries++;
    try {
      for (const session of await readContent(name, data, options)) sessions.push(session);
    } catch (error) {
      const unknownSegment = error instanceof PipelineError ? error.unknownSegment : undefined;
      const bad = badFile(`${name} in it: ${messageOf(error)}`, { cause: error, unknownSegment });
      if (!(error instanceof PipelineError) || error.unknownFormat !== true) throw bad;
      // NSE's daily archive has many reports; unknown ones must not prevent the others from being read.
      unknown ??= bad;
    }
  }
  if (entries === 0) throw badFile('the zip archive contains no .csv or .dat file');
  if (sessions.length === 0 && unknown !== undefined) throw unknown;
  return sessions;
}

/**
 * Can a file of this name be imported? Hidden files cannot, nor the files that macOS adds to archives (`._x.csv`,
 * `__MACOSX/…`).
 */
export function isImportName(path: string): boolean {
  return (
    /(?:^|[\\/])[^.\\/][^\\/]*\.(?:csv|dat|zip)(?:\.gz)?$/i.test(path) &&
    !/(?:^|[\\/])__MACOSX[\\/]/.test(path)
  );
}

/**
 * Reads a file that is not in an archive, as `FileSession.content` holds it.
 *
 * @param known the data sets of which files are read.
 * @throws PipelineError `unreadable` that says what is wrong with the file.
 */
export function readCsvFile(
  name: string,
  bytes: Buffer,
  timeZone: string,
  known: readonly DataSet[] = dataSets,
): FileSession[] {
  if (isGzip(bytes)) throw badFile('is compressed with gzip more than once; unpack it');
  refuseOtherContainers(bytes);
  const content = { name: keptName(name), bytes };
  // The first line of a list without a header must not be read as one.
  const scanned = isSymbolChanges(bytes.toString('latin1', 0, 1_000))
    ? null
    : scanFile(bytes.at(-1) === 0x1a ? bytes.subarray(0, -1) : bytes, timeZone, {
        columnsOf: (header, first) => columnsOf(header, first, known),
        exchangeOf,
        readersOf(columns, exchange) {
          const { reader, alsoReader } = newGroup(columns, exchange, timeZone);
          return {
            read: (source) => readRow(reader, { ...source, named: null }),
            readAlso: (source) => readAlso(alsoReader, source),
          };
        },
      });
  if (scanned !== null) {
    const { columns, exchange, day, rows, also, rejects } = scanned;
    const group = { byDay: new Map([[day, rows]]), alsoByDay: new Map([[day, also]]), rejects };
    return sessionsOf(exchange, group, { columns, content, warnings: [] });
  }
  const { rows, warnings } = parseRows(bytes);
  const [first] = rows;
  if (first === undefined) throw badFile('contains no rows');
  const columns = columnsOf(Object.keys(first), first, known);
  const { bySession, datedByName } = columns.format;
  const named = datedByName ? dayInName(name) : null;
  if (bySession && columns.nameOf('tradDt') === 'tradDt' && named === null) {
    throw badFile('has no date, neither in a column nor in a name such as EQ070421.CSV');
  }
  const groups = new Map<string, OpenGroup>();
  const needed = columns.format.passedOverWithout;
  let passedOver = 0;
  rows.forEach((row, position) => {
    if (!bySession && isBlankRow(row)) return;
    if (needed !== undefined && String(row[columns.nameOf(needed.field)] ?? '').trim() === '') {
      passedOver++;
      return;
    }
    const exchange = exchangeOf(columns, row);
    let group = groups.get(exchange);
    if (group === undefined) {
      group = newGroup(columns, exchange, timeZone);
      groups.set(exchange, group);
    }
    const found = readRow(group.reader, { columns, row, position, named });
    if (!('row' in found)) {
      group.rejects.push(found);
      return;
    }
    addRow(group.byDay, found);
    const also = readAlso(group.alsoReader, { columns, row, position });
    if (also === null) return;
    if ('row' in also) addRow(group.alsoByDay, also);
    else group.rejects.push(also);
  });
  const skipped = passedOver === 0 ? [] : [`lines skipped: ${passedOver}; they ${needed?.because}`];
  return [...groups].flatMap(([exchange, group]) =>
    sessionsOf(exchange, group, { columns, content, warnings: [...warnings, ...skipped] }),
  );
}

/** Lists may end with empty lines, or with U+001A, which DOS used to mark the end of a file. */
const isBlankRow = (row: FileRow) =>
  Object.values(row).every(
    (value) => typeof value !== 'string' || value.replaceAll('\u001A', '').trim() === '',
  );

/**
 * The name of a file without its path, at most 255 characters long, without characters that Postgres cannot store:
 * names in archives can be anything, and cutting one may leave half of a surrogate pair.
 */
const keptName = (name: string) =>
  basename(name)
    .slice(-255)
    .replace(/[\p{Cc}\p{Cs}]/gu, '_');

function parseRows(bytes: Buffer): { readonly rows: FileRow[]; readonly warnings: readonly string[] } {
  try {
    checkHeapRoom(bytes);
    const text = decode(bytes);
    // What the exchanges' sites send instead of a file that they do not have.
    if (/^\s*[<[{]/.test(text)) throw badFile('is a web page or JSON, not a CSV file; download it again');
    if (isDeliveryPositions(text)) return readDeliveryPositions(text);
    const rows = isSymbolChanges(text) ? readSymbolChanges(text) : readCsv(quoteNames(text));
    return { rows: rows as FileRow[], warnings: [] };
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    throw badFile(error.message.replace(/^the answer /, ''), { cause: error });
  }
}

/**
 * A line of NSE's list of changed symbols: a name, two symbols and a day, quoted or not. With more commas than a name
 * has, it is the header of another file whose last cell happens to be a day.
 */
const SYMBOL_CHANGE =
  /^"?((?:[^,]*,){0,5}[^,]*?)"?,\s*"?([^,\s"]+)"?\s*,\s*"?([^,\s"]+)"?\s*,\s*"?(\d{1,2}[- ](?:[A-Za-z]{3}|\d{1,2})[- ](?:\d{2}){1,2}|\d{4}-\d{2}-\d{2})"?[\s,]*$/;

const firstLine = (text: string) =>
  text
    .slice(0, 1_000)
    .trimStart()
    .split(/\r\n?|\n/, 1)[0] ?? '';

/** Is it a list of changed symbols without a header? */
const isSymbolChanges = (text: string) => SYMBOL_CHANGE.test(firstLine(text));

/** Names may contain unquoted commas, so lines are read from their end. */
function readSymbolChanges(text: string): FileRow[] {
  const [name, before, after, day] = SYMBOL_CHANGES_HEADER;
  return text
    .replace(/^\ufeff/, '')
    .split(/\r\n?|\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const found = SYMBOL_CHANGE.exec(line);
      if (found === null) return { [name]: line, [before]: null, [after]: null, [day]: null };
      return { [name]: found[1], [before]: found[2], [after]: found[3], [day]: found[4] };
    });
}

/**
 * Quotes names with commas in a list of changed symbols that has a header, if the line ends with two symbols and a day:
 * as the name is the first column, the line is unambiguous. Other texts stay as they are.
 */
function quoteNames(text: string): string {
  const [name, ...others] = firstLine(text.replace(/^\ufeff/, ''))
    .split(',')
    .map((one) => one.trim().toUpperCase());
  const [, ...expected] = SYMBOL_CHANGES_HEADER;
  if (name === undefined || others.join() !== expected.join()) return text;
  return text.replace(/^[^"\r\n]*(?=\r?$)/gm, (line) => {
    const found = SYMBOL_CHANGE.exec(line);
    return found?.[1]?.includes(',') === true ? `"${found[1]}"${line.slice(found[1].length)}` : line;
  });
}

/** The text of a file, without the U+001A that DOS put at its end. Old files have names in the code page windows-1252. */
function decode(bytes: Buffer): string {
  let text: string;
  try {
    text = decodeText(bytes);
  } catch {
    text = new TextDecoder('windows-1252').decode(bytes);
  }
  return text.endsWith('\u001A') ? text.slice(0, -1) : text;
}

/** The exchange of a row. Files of other segments have the same header, and must not be loaded as shares. */
function exchangeOf(columns: FileColumns, row: FileRow): string {
  const { format } = columns;
  if (format.exchange !== null) return format.exchange;
  const { udiff } = columns.dataSet;
  const segment = columns.value(row, 'sgmt');
  if (udiff !== undefined && segment !== null && segment !== udiff.segment)
    throw badFile(`has rows of the segments ${udiff.segment} and ${segment}`);
  const named =
    format.exchangeColumn === undefined
      ? columns.value(row, 'src')
      : columns.text(row, format.exchangeColumn);
  const found = exchangeNamed(named);
  const exchange = found === undefined || udiff === undefined ? found : udiff.exchanges[found];
  if (exchange === undefined) {
    throw badFile(
      `has rows of ${named ?? 'an exchange that it does not name'}; known are ${EXCHANGES.join(' and ')}`,
    );
  }
  return exchange;
}

/** The rows of one exchange, by their day. */
interface Group {
  readonly byDay: ReadonlyMap<string, Rows>;
  readonly alsoByDay: ReadonlyMap<string, Rows>;
  readonly rejects: readonly Reject[];
}

/** The rows of one exchange while they are being read. */
interface OpenGroup {
  readonly reader: RecordReader;
  readonly byDay: Map<string, Row[]>;
  /** Reads what the rows have for another table. */
  readonly alsoReader: RecordReader | null;
  readonly alsoByDay: Map<string, Row[]>;
  readonly rejects: Reject[];
}

function newGroup({ dataSet, format }: FileColumns, exchange: string, timeZone: string): OpenGroup {
  const { also } = format;
  const asked = { exchange, from: '', to: '', instruments: [], params: {}, calledOn: '' };
  const readerOf = (one: DataSet) => createRecordReader(one, asked, timeZone);
  return {
    reader: readerOf(dataSet),
    byDay: new Map(),
    alsoReader: also === undefined ? null : readerOf(dataSetNamed(also.dataSet)),
    alsoByDay: new Map(),
    rejects: [],
  };
}

interface DatedRow extends SourceRow {
  /** The day in the file's name, if the format has no date. */
  readonly named: string | null;
}

function readRow(reader: RecordReader, source: DatedRow): ReadRow {
  const { columns, row, named } = source;
  const missing = columns.missingIn(row);
  const record = columns.record(row);
  if (named !== null) record.tradDt ??= named;
  const { check } = columns.format;
  // In a user's own list the note is optional.
  if (check !== undefined) record.purpose ??= [record.kind, record.ratio].filter(Boolean).join(' ');
  const problem = check?.(record) ?? null;
  if (missing === null && problem === null) return resultOf(reader.read(record), source);
  return rejectOf(source, [problem ?? { path: missing ?? '', message: 'is missing: the row breaks off' }]);
}

/** Reads what a valid row has for another table. */
function readAlso(reader: RecordReader | null, source: SourceRow): ReadRow | null {
  const { columns, row } = source;
  return columns.also === null || reader === null ? null : resultOf(reader.read(columns.also(row)), source);
}

function resultOf(result: RecordResult, source: SourceRow): ReadRow {
  if (result.table !== null) {
    return { row: result.row, day: String(result.row[result.table.dateColumn ?? '']) };
  }
  const { columns } = source;
  return rejectOf(
    source,
    result.problems.map(({ path, message }) => ({ path: columns.nameOf(path), message })),
  );
}

const rejectOf = (
  { position, row }: Pick<SourceRow, 'position' | 'row'>,
  problems: readonly Problem[],
): Reject => ({ position, record: sanitizeRecord(row), problems });

function addRow(byDay: Map<string, Row[]>, { row, day }: { readonly row: Row; readonly day: string }): void {
  const rows = byDay.get(day);
  if (rows === undefined) byDay.set(day, [row]);
  else rows.push(row);
}

/** Rejects belong to the largest session of the file, because the date of a rejected row may be wrong. */
function sessionsOf(
  exchange: string,
  { byDay, alsoByDay, rejects }: Group,
  file: Pick<FileSession, 'content' | 'warnings'> & { readonly columns: FileColumns },
): FileSession[] {
  const { columns, content, warnings } = file;
  const { format, dataSet } = columns;
  const days = [...byDay].sort(([, a], [, b]) => b.length - a.length);
  if (days.length === 0) {
    const problem = rejects[0]?.problems[0];
    throw badFile(`has no valid row; in the first, ${problem?.path ?? ''} ${problem?.message ?? ''}`);
  }
  const all = days.map(([day]) => day).sort();
  const parts = format.bySession
    ? days.map(([day, rows]) => ({ day, to: day, rows }))
    : [{ day: all[0] as string, to: all.at(-1) as string, rows: days.flatMap(([, rows]) => [...rows]) }];
  return parts.map(({ day, to, rows }, at) => ({
    format: format.name,
    dataSet: dataSet.name,
    exchange,
    day,
    to,
    rows,
    also:
      format.also === undefined || columns.also === null
        ? null
        : { table: dataSetNamed(format.also.dataSet).shapes[0].table, rows: alsoByDay.get(day) ?? [] },
    warnings: at === 0 ? warnings : [],
    content,
    rejects: at === 0 ? rejects : [],
    complete: format.complete && days.length === 1,
    withoutTickers: format.withoutTickers,
    unknown: columns.unknown(dataSet.shapes[0].table.fields),
    rounded: roundedIn(format),
    sometimesBlank: format.sometimesBlank,
  }));
}

/** The columns that files of a format round, and by how much. */
function roundedIn(format: FileFormat): Record<string, number> {
  if (format.dataSet === null) return {};
  const { fields } = dataSetNamed(format.dataSet).shapes[0].table;
  const columnOf = (source: string) =>
    fields.find((field) => field.from === 'answer' && field.source === source)?.column ?? source;
  return Object.fromEntries(
    Object.entries(format.rounded).map(([source, within]) => [columnOf(source), within]),
  );
}

/** The columns that files of any format round, and by how much. */
export function roundedColumns(): Record<string, number> {
  return Object.fromEntries(FORMATS.flatMap((format) => Object.entries(roundedIn(format))));
}
