import { type Options, parse } from 'csv-parse/sync';
import { compileMaker } from '../core/compiled-objects.ts';
import { errorCode, messageOf, PipelineError, readMember } from '../core/errors.ts';
import type { Operation } from '../declaration/operation.ts';
import { decodeText, isUtf16 } from './body.ts';
import { tooLarge, unreadable } from './diagnostics.ts';
import { checkHeapRoom } from './heap-room.ts';
import { fitsAnyShape } from './layout.ts';
import { countLineEnds, findLongLine } from './lines.ts';

/** The most rows of one response, like `MAX_CONTAINERS` for JSON. */
export const MAX_ROWS = 2_000_000;

/** The most bytes of a line and of a row. A longer line never becomes a string: of commas, it would be a list of cells. */
export const MAX_ROW_BYTES = 1_000_000;

const OPTIONS = {
  bom: true,
  trim: true,
  skip_empty_lines: true,
  // The source was seen to send responses whose header has more names than the rows have cells.
  relax_column_count: true,
  // A quote inside an unquoted cell (`7.5" PIPES`) is an ordinary character.
  relax_quotes: true,
  max_record_size: MAX_ROW_BYTES,
} as const;

/** True if this text begins with a header row that names a record of the operation. */
export function looksLikeCsv(operation: Operation, text: string): boolean {
  const start = text.slice(0, 20_000).trimStart();
  const header = /^[^\r\n]*/.exec(start)?.[0] ?? '';
  try {
    return fitsAnyShape(
      operation,
      (parse(header, OPTIONS)[0] ?? []).map((name) => name.trim()),
    );
  } catch {
    return false;
  }
}

/**
 * How many rows may differ in length from the first one. The parser creates an error object for each, which takes
 * twenty times as long as reading the row.
 */
const MAX_UNEVEN_ROWS = 10_000;

/**
 * How many cells that the header names may be missing in the rows of any text; a long text may lack as many as it has
 * characters. Otherwise a row of two bytes could become a record of a thousand values.
 */
const ABSENT_CELLS = 10_000;

/**
 * True if the last line has a line end. If lines end with a line feed, a carriage return alone is none: the text was
 * cut off between the two.
 */
export function endsItsLastLine(text: string): boolean {
  // Without a regular expression, which would scan the rest of the text from each line end.
  return text.slice(text.trimEnd().length).includes(text.includes('\n') ? '\n' : '\r');
}

/**
 * Rows as records keyed by the header's names, every value as text. Of a repeated name the first column is used; a row
 * that is shorter than the header leaves the rest null. A row that is longer, because a text with commas is not in
 * quotes, is put together again where a space follows the comma; otherwise nobody knows which cell belongs to which
 * name, and the row is returned as a list, which is no record. The work is proportional to the length of the text.
 *
 * @throws PipelineError `unreadable` for CSV that cannot be parsed, breaks off inside its last row, or
 *   has a line that is too long, or whose rows do not match the header or each other in too many columns; `too_large`
 *   for too many rows.
 *
 * @param bytes those of the text.
 */
export function readCsv(text: string, bytes: Buffer = Buffer.from(text)): object[] {
  checkLines(bytes);
  return readPlainCsv(text) ?? readAnyCsv(text);
}

/** @throws PipelineError for too many lines, or one that is too long. */
function checkLines(bytes: Buffer): void {
  if (countLineEnds(bytes) >= MAX_ROWS) throw tooLarge(`more than ${MAX_ROWS} rows`);
  const long = findLongLine(bytes, MAX_ROW_BYTES);
  if (long !== null)
    throw unreadable(
      `broken CSV (line ${long.line} has ${long.bytes} bytes; at most ${MAX_ROW_BYTES} of a line are read)`,
    );
}

/**
 * Reads CSV as `readPlainCsv` does, in slices of whole lines, so that neither its text nor all records are in memory at
 * once.
 *
 * @param take is called with each record and its position.
 * @param sliceBytes the least size of a slice.
 * @returns null if it is not that simple, or not CSV of the operation; some records may have been taken.
 */
export function readCsvInSlices(
  operation: Operation,
  body: Buffer,
  take: (position: number, record: unknown) => void,
  sliceBytes = SLICE,
): { readonly endsItsLastLine: boolean } | null {
  const start = body.subarray(0, LONGEST_HEADER).indexOf(LINE_FEED) + 1;
  if (start === 0) return null;
  const header = body.subarray(0, start);
  const names = header.toString();
  // JSON and XML are not CSV, whatever their first line is.
  if (isUtf16(body) || /^\s*[[{<]/.test(names) || !looksLikeCsv(operation, names)) return null;
  checkHeapRoom(body);
  checkLines(body);
  let records = 0;
  let text = '';
  for (let from = start; from < body.length; ) {
    const lineEnd = body.indexOf(LINE_FEED, from + sliceBytes);
    const to = lineEnd === -1 ? body.length : lineEnd + 1;
    text = decodeText(Buffer.concat([header, body.subarray(from, to)]));
    const rows = readPlainCsv(text, copyLong);
    if (rows === null) return null;
    for (const row of rows) take(records++, row);
    from = to;
  }
  return { endsItsLastLine: endsItsLastLine(text) };
}

/** V8 keeps a whole text in memory for a part of it, but copies those that are not longer. */
const LONGEST_COPIED = 12;

/** The same text, for which no other one is kept in memory. */
const copyLong = (cell: string) => (cell.length > LONGEST_COPIED ? Buffer.from(cell).toString() : cell);

/** A slice of CSV has at least so many bytes, like those of JSON. */
const SLICE = 64 * 1024;

const TAB = 9;
const LINE_FEED = 10;
const SPACE = 32;

/** White space other than spaces and tabs: the parser decides about it. */
const OTHER_SPACE = String.raw`\n\r\v\f\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`;
const CELL = `[^,"${OTHER_SPACE}]*`;

/**
 * Reads CSV without quotes whose rows have as many cells as the header, like most files of the exchanges, in a fifth of
 * the parser's time.
 *
 * @param keep is given each cell, and returns it as it is kept.
 * @returns null if the text is not that simple, and has to be parsed.
 */
export function readPlainCsv(text: string, keep = (cell: string) => cell): object[] | null {
  const start = text.startsWith('\ufeff') ? 1 : 0;
  const firstEnd = text.indexOf('\n', start);
  const ending = text[firstEnd - 1] === '\r' ? '\r\n' : '\n';
  const header = firstEnd === -1 ? text.slice(start) : text.slice(start, firstEnd);
  const names = header.split(',').map((name) => name.trim());
  // Single columns, empty lines and other line ends are left to the parser.
  if (names.length < 2 || names.includes('__proto__')) return null;
  const line = new RegExp(`(?:${CELL},){${names.length - 1}}${CELL}(?=${ending}|$)`, 'y');
  const readLine = createLineReader(text, names, keep);
  const records: object[] = [];
  for (let from = start; from < text.length; from = line.lastIndex + ending.length) {
    line.lastIndex = from;
    if (!line.test(text)) return null;
    if (from > start) records.push(readLine(from, line.lastIndex));
  }
  return records;
}

/** Makes the function that reads the line between two offsets. */
function createLineReader(text: string, names: readonly string[], keep: (cell: string) => string) {
  const columns = distinctColumns(names);
  const makeRecord = compileMaker<string>(columns.map(([name]) => name));
  const cells: string[] = columns.map(() => '');
  // Of a repeated name the first column is used.
  const positions = names.map((_, index) => columns.findIndex(([, first]) => first === index));
  return (start: number, end: number): object => {
    let from = start;
    for (const position of positions) {
      const comma = text.indexOf(',', from);
      const to = comma === -1 || comma > end ? end : comma;
      if (position !== -1) {
        let first = from;
        let behind = to;
        while (first < behind && isPadding(text.charCodeAt(first))) first += 1;
        while (first < behind && isPadding(text.charCodeAt(behind - 1))) behind -= 1;
        cells[position] = keep(text.slice(first, behind));
      }
      from = to + 1;
    }
    return makeRecord(cells);
  };
}

const isPadding = (code: number): boolean => code === SPACE || code === TAB;

/** No header of any source has more characters. */
const LONGEST_HEADER = 20_000;

/** The names in the first row of a text, which may be cut off behind it; also if the row is broken. */
export function readHeader(text: string): string[] {
  const start = text.slice(0, LONGEST_HEADER);
  const plain = (/^[^\r\n]*/.exec(start.trimStart())?.[0] ?? '').split(',').map((name) => name.trim());
  // The parser decides which of several line ends counts.
  const isPlain = !start.includes('"') && new Set(start.match(/\r\n?|\n/g)).size < 2;
  if (isPlain) return plain;
  try {
    const [names = []] = parseRows(Buffer.from(start), { to: 1 });
    // The parser trims only around quotes.
    return names.map((name) => name.trim());
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    return plain;
  }
}

type Columns = readonly (readonly [name: string, index: number])[];

/** Reads any CSV, with the parser. @throws PipelineError as `readCsv` does. */
export function readAnyCsv(text: string): object[] {
  const bytes = Buffer.from(text);
  // The header is parsed separately, because rows may be shorter.
  let headerLines = 0;
  const [header] = parseRows(bytes, {
    to: 1,
    on_record(row: string[], { lines }) {
      headerLines = lines;
      return row;
    },
  });
  if (header === undefined) return [];
  const columns = distinctColumns(header);
  let absent = 0;
  const mostAbsent = Math.max(ABSENT_CELLS, text.length);
  const rows = parseRows(bytes, {
    from_line: headerLines + 1,
    on_record(row: string[], { invalid_field_length: uneven }) {
      absent += Math.max(0, columns.length - row.length);
      if (uneven > MAX_UNEVEN_ROWS) throw unreadable('the rows of the CSV differ in length');
      if (absent > mostAbsent) {
        throw unreadable('the header of the CSV names far more columns than its rows fill');
      }
      return row;
    },
  });
  // Once more, with the spaces after commas, if a row may have a text with commas.
  const spaced = rows.some((row) => isLonger(row, columns.length))
    ? parseRows(Buffer.from(markSpaces(text)), { from_line: headerLines + 1 })
    : [];
  const joined = spaced.length === rows.length ? spaced.map(joinedCells) : rows;
  const endsWhole = endsItsLastLine(text);
  // Of a header that repeats names, the rows may have a cell for each name or for each distinct one.
  const someHave = (list: string[][], cells: number) =>
    list.some((row, at) => row.length === cells && (endsWhole || at === 0 || at < list.length - 1));
  const isDistinct =
    someHave(rows, columns.length) || (!someHave(rows, header.length) && someHave(joined, columns.length));
  const width = isDistinct ? columns.length : header.length;
  // The first row may be longer than the last because of commas in a text, so the cells are counted after joining.
  const chooseCells = (at: number) => (isLonger(rows[at] ?? [], width) ? joined : rows)[at] ?? [];
  const isShort =
    rows.length > 0 && chooseCells(rows.length - 1).length < Math.min(width, chooseCells(0).length);
  if (!endsWhole && (isShort || text.endsWith('\r'))) {
    throw unreadable('the CSV breaks off inside its last row', { cutShort: true });
  }
  return rows.map((row, at) => buildRecord(row, joined[at] ?? row, columns, width));
}

/** True if a row has more cells than this, other than empty ones. */
const isLonger = (row: readonly string[], width: number) => row.slice(width).some((cell) => cell !== '');

/** A line with so many times the cells of a row is more than one; a text with commas adds a few. */
const JOINED_FROM = 1.5;

/** The cells of a line in which ends of lines are missing, so that rows are. */
export class JoinedRows extends Array<string> {}

/** The record of a row, or of its joined cells if it is too long; a list if these are not as many as there are names. */
function buildRecord(
  row: readonly string[],
  joined: readonly string[],
  columns: Columns,
  width: number,
): object | readonly string[] {
  const cells = isLonger(row, width) ? joined : row;
  if (cells !== row && cells.length !== width)
    return row.length > JOINED_FROM * width ? JoinedRows.from(row) : row;
  return Object.fromEntries(columns.map(([name, index]) => [name, cells[index] ?? null]));
}

/** Stands for a space after a comma, which the parser would trim: no text has it, because it is no character. */
const SPACE_MARK = '\ufdd0';

const markSpaces = (text: string): string => text.replace(/, (?=[^\s,])/g, `,${SPACE_MARK}`);

/** Appends each cell that begins with a marked space to the one before: in a text, a space follows a comma. */
function joinedCells(row: readonly string[]): string[] {
  const joined: string[] = [];
  for (const cell of row) {
    const text = cell.replaceAll(SPACE_MARK, ' ');
    if (cell.startsWith(SPACE_MARK) && joined.length > 0) joined[joined.length - 1] += `,${text}`;
    else joined.push(text.trim());
  }
  return joined;
}

function parseRows(bytes: Buffer, options: Options): string[][] {
  let whole = Number(options.from_line ?? 1) - 1;
  const on_record: Options['on_record'] = (row, about) => {
    whole = about.lines;
    return options.on_record?.(row, about) ?? row;
  };
  try {
    return parse(bytes, { ...OPTIONS, ...options, on_record });
  } catch (error) {
    if (error instanceof PipelineError) throw error;
    const code = errorCode(error) ?? '';
    const known = PARSER_ERRORS[code];
    const line = UNCLOSED.has(code) ? lineBehind(bytes, whole) : readMember(error, 'lines');
    throw unreadable(
      `broken CSV (${known === undefined ? messageOf(error).slice(0, 200) : `line ${line} ${known}`})`,
    );
  }
}

/** The number of the first line that is not empty behind so many lines: there a row begins that the parser could not end. */
function lineBehind(bytes: Buffer, lines: number): number {
  const behind = bytes
    .toString()
    .split(/\r\n?|\n/)
    .slice(lines);
  const isFilled = (line: string) => line.trim() !== '';
  return lines + 1 + Math.max(0, behind.findIndex(isFilled));
}

const QUOTE_INSIDE = 'has a quote inside a quoted cell, where it has to be written twice';

/** What the parser's errors mean, in the words of somebody who looks at the line. */
const PARSER_ERRORS: Readonly<Record<string, string>> = {
  CSV_INVALID_CLOSING_QUOTE: QUOTE_INSIDE,
  CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE: QUOTE_INSIDE,
  CSV_QUOTE_NOT_CLOSED: 'has a quote that is never closed',
  // No line alone is so long, see `findLongLine`.
  CSV_MAX_RECORD_SIZE: `has a quote that is not closed within ${MAX_ROW_BYTES} bytes`,
};

/** Errors that are noticed far behind the quote that is their cause. */
const UNCLOSED: ReadonlySet<string> = new Set(['CSV_QUOTE_NOT_CLOSED', 'CSV_MAX_RECORD_SIZE']);

/** Each name of the header with the index of its first column. */
function distinctColumns(header: readonly string[]): [name: string, index: number][] {
  const columns = new Map<string, number>();
  for (const [index, name] of header.entries()) {
    if (!columns.has(name.trim())) columns.set(name.trim(), index);
  }
  return [...columns];
}
