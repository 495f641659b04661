import { PipelineError } from '../../core/errors.ts';
import { decodeText, isUtf16 } from '../body.ts';
import { MAX_ROW_BYTES, MAX_ROWS, readAnyCsv, readHeader, readPlainCsv } from '../csv.ts';
import { badFile } from '../diagnostics.ts';
import { checkHeapRoom } from '../heap-room.ts';
import { countLineEnds, findLongLine } from '../lines.ts';
import { fileDay } from './file-columns.ts';
import type { FileFormat, FileRow, ParsedFile } from './file-format.ts';
import { firstLine } from './first-line.ts';
import { FORMATS, findFormat, wordsInNames } from './formats.ts';

/** How much of a file is looked at to find out its format. */
const START_BYTES = 20_000;

/** How a file begins: what has to be known before it is read. */
interface FileStart {
  /** `header`: its first line is one, and rows follow; `json`: it is a JSON document. */
  readonly form: 'header' | 'own' | 'json';
  readonly read: (text: string) => ParsedFile;
}

/**
 * Stands before the readers of a file: looks at its bytes and its first lines, without making a string of anything else.
 *
 * @throws PipelineError `unreadable` if its lines are too long or too many, or if it has no known format.
 */
export function checkFile(bytes: Buffer, name: string): FileStart {
  const start = decodeStart(bytes);
  if (/^\s*[[{]/.test(start)) return { form: 'json', read: (text) => readJson(text, name) };
  const long = findLongLine(bytes, MAX_ROW_BYTES);
  if (long !== null) {
    throw badFile(`line ${long.line} has ${long.bytes} bytes; at most ${MAX_ROW_BYTES} of a line are read`);
  }
  const ends = countLineEnds(bytes);
  if (ends > MAX_ROWS) throw badFile(`has ${ends} lines; at most ${MAX_ROWS} are read`);
  if (start.trim() === '') throw badFile('contains no rows');
  // What the exchanges' sites send instead of a file that they do not have.
  if (/^\s*</.test(start)) throw badFile('is a web page, not a CSV file; download it again');
  const format = FORMATS.find(
    ({ detect, title }) => detect?.(start) === true || title?.test(firstLine(start)) === true,
  );
  if (format !== undefined) {
    return { form: 'own', read: format.parse ?? ((text) => readTitled(text, name, format)) };
  }
  refuseUnknownHeader(start, name);
  return { form: 'header', read: readWithHeader };
}

const readWithHeader = (text: string): ParsedFile => ({
  header: readHeader(text),
  rows: (readPlainCsv(text) ?? readAnyCsv(text)) as FileRow[],
  warnings: [],
});

/** Reads a file whose first line is a title with its day. @throws PipelineError `unreadable` if no known header follows. */
function readTitled(text: string, name: string, format: FileFormat): ParsedFile {
  const title = firstLine(text.replace(/^\ufeff/, ''));
  const day = fileDay(format.title?.exec(title)?.[1] ?? '');
  const rest = text.slice(text.indexOf(title) + title.length).trimStart();
  if (format.header !== undefined) {
    const { header } = format;
    const rows = rest.split(/\r\n?|\n/).flatMap((line) => {
      const cells = line.split(',').map((cell) => cell.trim());
      // Some lines lack their number.
      return cells.every((cell) => cell === '') ? [] : [makeRow(header.slice(-cells.length), cells)];
    });
    return { header, rows, warnings: [], day };
  }
  if (findFormat(readHeader(rest), name, true) === undefined) refuseUnknownHeader(rest, name);
  return { ...readWithHeader(rest), day };
}

const makeRow = (header: readonly string[], cells: readonly unknown[]): FileRow =>
  Object.fromEntries(header.map((name, at) => [name, cells[at] ?? null]));

/** Reads a list of records in JSON, itself or a member of an object. @throws PipelineError `unreadable` */
function readJson(text: string, name: string): ParsedFile {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    // Its message quotes the document.
    throw badFile('is not a JSON document', { cause: error });
  }
  const isRecords = (value: unknown): value is FileRow[] =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => typeof item === 'object' && item !== null);
  const records = [parsed, ...Object.values(parsed ?? {})].find(isRecords);
  if (records === undefined) throw badFile('is JSON without a list of records', { unknownForm: 'JSON' });
  const header = Object.keys(records[0] ?? {});
  if (findFormat(header, name) === undefined) {
    const shownHeader = headerText(header, header.join());
    const members = shownHeader === null ? '' : `; its records have ${shownHeader}`;
    throw badFile(`is JSON of no known format${members}`, { unknownForm: shownHeader ?? 'JSON' });
  }
  const cellText = (value: unknown) => (value === null || typeof value === 'object' ? null : String(value));
  const rows = records.map((record) =>
    makeRow(
      header,
      header.map((key) => cellText(record[key] ?? null)),
    ),
  );
  return { header, rows, warnings: [] };
}

/** What separates cells in files that were saved by another program than those of the exchanges. */
const OTHER_SEPARATORS: readonly (readonly [separator: string, name: string])[] = [
  [';', 'semicolons'],
  ['\t', 'tabs'],
  ['|', 'vertical bars'],
];

/** A title or note that a program put before the header is not longer. */
const LINES_BEFORE_HEADER = 10;

/** A number or a day, which rows have and headers do not. */
const VALUE = /^-?\d[\d.]*$|^\d{1,2}[-/ ](?:\d{1,2}|[a-z]{3,9})[-/ ]\d{2,4}$|^\d{4}-\d{2}-\d{2}$/i;

/** The names of a header may be numbers now and then, but not so many of them. */
const VALUES_OF_ROW = 3;

/** The names of columns are words and short numbers, unlike keys and passwords, in which letters and digits are mixed. */
const COLUMN_NAME = /^[ _.()/%&'*#-]*(?:(?:\p{L}{1,24}|\d{1,4})(?:[ _.()/%&'*#-]+|$))+$/u;

/** How much of a header is shown. */
const HEADER_SHOWN = 80;

/**
 * The start of a line if it looks like the header of a file; else null. A file that is not one of an exchange may be
 * anything, such as a list of passwords: nothing else of it is shown.
 */
function headerText(cells: readonly string[], line: string): string | null {
  const names = cells.map((cell) => cell.trim()).filter((cell) => cell !== '');
  const isHeader = names.length > 1 && names.every((name) => COLUMN_NAME.test(name) && !VALUE.test(name));
  return isHeader ? line.slice(0, HEADER_SHOWN) : null;
}

/** @throws PipelineError that says why the header at the start of a text is of no known format, if so. */
function refuseUnknownHeader(start: string, name: string): void {
  const header = readHeader(start);
  const values = header.filter((cell) => VALUE.test(cell.trim())).length;
  if (findFormat(header, name) !== undefined) {
    if (values < VALUES_OF_ROW) return;
    throw badFile('has a row on the line of its header; put the end of a line between them');
  }
  const words = wordsInNames(header);
  if (words.length > 0)
    throw badFile(
      `has the columns of several formats; put ${words.map((word) => `"${word}"`).join(' or ')} into its name`,
    );
  const lines = start.split(/\r\n?|\n/).filter((line) => line.trim() !== '');
  const [first = ''] = lines;
  const firstLines = lines.slice(0, LINES_BEFORE_HEADER);
  for (const [separator, separators] of OTHER_SEPARATORS) {
    const splitCells = (line: string) =>
      line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));
    if (firstLines.some((line) => findFormat(splitCells(line), name) !== undefined)) {
      throw badFile(`separates its cells by ${separators}, not by commas; save it as CSV with commas`);
    }
  }
  const at = firstLines.findIndex((line) => findFormat(readHeader(`${line}\n`), name) !== undefined);
  if (at > 0)
    throw badFile(`has ${at === 1 ? 'a line' : `${at} lines`} before its header; delete what is before it`);
  const shownHeader = headerText(header, first);
  const form = values === 0 ? 'no header' : 'no header, the first line is a row';
  const firstLineText = shownHeader === null ? `it has ${form}` : `its header begins "${shownHeader}"`;
  throw badFile(`is not a file of a known format; ${firstLineText}`, { unknownForm: shownHeader ?? form });
}

/** Parses the rows of a file. */
export function parseRows(bytes: Buffer, start: FileStart): ParsedFile {
  try {
    checkHeapRoom(bytes);
    return start.read(decode(bytes));
  } catch (error) {
    if (!(error instanceof PipelineError) || error.unknownForm !== undefined) throw error;
    throw badFile(error.message.replace(/^the response /, ''), { cause: error });
  }
}

/** So many bytes at the end of a file have enough lines to compare the last one with. */
const END_BYTES = 20_000;
const LEAST_COMPARED = 5;

/**
 * What to say of a file that ends without the end of a line, in a cell that is shorter than the same cell of the lines
 * before, all of which are of one length or have as many decimals. Its download may have been cut; it may also be whole.
 */
export function cutLineText(bytes: Buffer): string[] {
  const text = bytes.subarray(-END_BYTES).toString('latin1');
  if (['\n', '\r', '\0', '\u001a'].some((end) => text.endsWith(end))) return [];
  const cells = text
    .split(/\r\n?|\n/)
    .slice(1)
    .map((line) => line.slice(line.lastIndexOf(',') + 1).trim());
  const last = cells.pop() ?? '';
  if (cells.length < LEAST_COMPARED || last === '-') return [];
  const isShorter = (measure: (cell: string) => number) => {
    const [size = 0, ...others] = new Set(cells.map(measure));
    return others.length === 0 && measure(last) < size;
  };
  const decimals = (cell: string) => /^-?\d+\.(\d+)$/.exec(cell)?.[1]?.length ?? 0;
  return isShorter(decimals) || isShorter(({ length }) => length)
    ? [
        `its last line may be cut: it ends in "${last}", and the lines before it in values such as "${cells.at(-1)}"; download it again`,
      ]
    : [];
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

/** The text at the start of a file. It may end inside a character. */
function decodeStart(bytes: Buffer): string {
  const isWide = isUtf16(bytes);
  return new TextDecoder(isWide ? (bytes[0] === 0xff ? 'utf-16le' : 'utf-16be') : 'utf-8').decode(
    bytes.subarray(0, START_BYTES),
  );
}
