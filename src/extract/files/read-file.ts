import { basename } from 'node:path';
import { exchangeNamed } from '../../core/exchanges.ts';
import { onlyDayIn } from '../../core/file-order.ts';
import type { Row } from '../../declaration/table.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { JoinedRows } from '../csv.ts';
import { badFile } from '../diagnostics.ts';
import type { Reject } from '../types.ts';
import { columnsFor, type FileColumns, findColumns } from './file-columns.ts';
import type { FileRow } from './file-format.ts';
import { dayInName, exampleName } from './formats.ts';
import { checkFile, cutLineText, parseRows } from './parse-rows.ts';
import { type DatedRow, makeReaders, readAlso, readExchange, readRow } from './read-row.ts';

/** The file that a part was read from: the imported one, or one in an archive. */
interface FileContent {
  readonly name: string;
  readonly bytes: Buffer;
}

/**
 * What a file has of one exchange and, if its rows are about trading days, of one of these; validated like a response.
 */
export type FilePart = ReturnType<typeof makeParts>[number];

/** More rows are not looked for on one line. */
const MOST_JOINED = 8;

/**
 * Reads a file that is not in an archive, as `FilePart.content` holds it.
 *
 * @throws PipelineError `unreadable` that says what is wrong with the file.
 */
export function readCsvFile(name: string, bytes: Buffer, timeZone: string): FilePart[] {
  const content = { name: keptName(name), bytes };
  const start = checkFile(bytes, content.name);
  const { header, rows, ...titled } = parseRows(bytes, start);
  const warnings = [...titled.warnings, ...(start.form === 'header' ? cutLineText(bytes) : [])];
  // A row that is a list of cells is several rows, or none.
  const first = rows.find((row) => !Array.isArray(row)) ?? rows[0];
  const isTitled = titled.day !== undefined;
  const columns = findColumns({ name: content.name, header, isTitled }, first ?? {});
  const { byTradingDay } = columns.format;
  const dayOfFile = chooseDay(columns, name, titled.day);
  if (first === undefined) {
    if (columns.format.mayBeEmpty !== true) throw badFile('contains no rows');
    if (!byTradingDay) return [];
    const exchange = readExchange(columns, {});
    const none = newGroup(columns, exchange, timeZone);
    // Its title or its name says of which day it lists nothing.
    none.byDay.set(dayOfFile ?? '', []);
    return makeParts(exchange, none, { columns, content, warnings, passedOver: 0 });
  }
  const reading = { columns, dayOfFile, timeZone, bytes, isJson: start.form === 'json', first };
  const groups = new Map<string, Group>();
  let passedOver = 0;
  const take = (row: FileRow, position: number) => {
    if ((!byTradingDay || columns.format.day !== undefined) && isBlankRow(row)) return;
    if (isPassedOver(columns, row)) passedOver++;
    else takeRow(groups, row, position, reading);
  };
  const endsBlank = rows.some((row) => Array.isArray(row)) && isLastCellBlank(rows, header);
  const isOwnRow = (part: FileRow) => isRow(part, reading);
  for (const position of positionsInOrder(rows, columns)) {
    const row = rows[position] as FileRow;
    if (!Array.isArray(row)) take(row, position);
    else
      for (const part of splitJoinedRows(row, header, { isRow: isOwnRow, endsBlank }) ?? [row])
        take(part, position);
  }
  return [...groups].flatMap(([exchange, group], at) =>
    makeParts(exchange, group, {
      columns,
      content,
      warnings,
      passedOver: at === 0 ? passedOver : 0,
    }),
  );
}

/** A file whose rows are being read. */
interface Reading extends Pick<DatedRow, 'columns' | 'dayOfFile'> {
  readonly timeZone: string;
  readonly bytes: Buffer;
  readonly isJson: boolean;
  /** Its first row that is not a list of cells. */
  readonly first: FileRow;
}

/** True if the row is about nothing that is stored. */
function isPassedOver({ format, nameOf }: FileColumns, row: FileRow): boolean {
  const needed = format.passedOverWithout;
  // A list of cells has no names: it is a reject.
  if (needed === undefined || Array.isArray(row)) return false;
  return String(row[nameOf(needed.field)] ?? '').trim() === '';
}

/**
 * Adds a row to the group of its exchange.
 *
 * @throws PipelineError `unreadable` for a number that a spreadsheet has shortened.
 */
function takeRow(groups: Map<string, Group>, row: FileRow, position: number, reading: Reading): void {
  const { columns, dayOfFile, timeZone, bytes, isJson, first } = reading;
  // A spreadsheet does not shorten the numbers of a JSON document.
  const shortened = isJson || Array.isArray(row) ? null : columns.shortened(row);
  if (shortened !== null) {
    const { column, text } = shortened;
    throw badFile(
      `has "${text.trim().slice(0, 40)}" in ${column} on line ${findLine(bytes, text)}: a spreadsheet has shortened this number, and its last digits are lost; download the file again`,
    );
  }
  // Which cell of a list is the exchange is not known.
  const exchange = readExchange(columns, Array.isArray(row) ? first : row);
  const group = groups.get(exchange) ?? newGroup(columns, exchange, timeZone);
  groups.set(exchange, group);
  if (row instanceof JoinedRows) group.joined += 1;
  const result = readRow(group.reader, { columns, row, position, dayOfFile });
  if (!('row' in result)) {
    group.rejects.push(result);
    return;
  }
  addRow(group.byDay, result);
  const also = readAlso(group.alsoReader, { columns, row, position });
  if (also === null) return;
  if ('row' in also) addRow(group.alsoByDay, also);
  else group.rejects.push(also);
}

/** The positions of the rows in the order in which they are read: that of the file, or of the number that its format names. */
function positionsInOrder(rows: readonly FileRow[], { format, value }: FileColumns): Iterable<number> {
  const { greatestFirst: field } = format;
  if (field === undefined) return rows.keys();
  const amounts = rows.map((row, position) => ({ position, amount: Number(value(row, field) ?? 0) }));
  return amounts.sort((a, b) => b.amount - a.amount).map(({ position }) => position);
}

/** True if the last cell of all rows is blank, but for those that are lists of cells. */
function isLastCellBlank(rows: readonly FileRow[], header: readonly string[]): boolean {
  const name = header.at(-1)?.trim() ?? '';
  if (name === '') return true;
  const records = rows.filter((row) => !Array.isArray(row));
  return records.length > 0 && records.every((row) => String(row[name] ?? '').trim() === '');
}

/** The number of the first line that has this text in a cell, from 1. */
function findLine(bytes: Buffer, text: string): number {
  // Of UTF-16 every second byte is NUL.
  const lines = bytes
    .toString('latin1')
    .replaceAll('\0', '')
    .split(/\r\n?|\n/);
  const cellText = (cell: string) =>
    cell
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .trim();
  return lines.findIndex((line) => line.split(',').some((cell) => cellText(cell) === text.trim())) + 1;
}

/**
 * The name of a file without its path, at most 255 characters long, without characters that Postgres cannot store:
 * names in archives can be anything, and cutting one may leave half of a surrogate pair.
 */
const keptName = (name: string) =>
  basename(name)
    .slice(-255)
    .replace(/[\p{Cc}\p{Cs}]/gu, '_');

/** The rows of one exchange, by their day. */
type Group = ReturnType<typeof newGroup>;

function newGroup(columns: FileColumns, exchange: string, timeZone: string) {
  const rejects: Reject[] = [];
  const [byDay, alsoByDay] = [new Map<string, Row[]>(), new Map<string, Row[]>()];
  return { ...makeReaders(columns, exchange, timeZone), byDay, alsoByDay, rejects, joined: 0 };
}

/** True if these cells are a valid row of the file. */
function isRow(row: FileRow, { columns, dayOfFile, timeZone }: Reading): boolean {
  if (columns.format.exchange === null && exchangeNamed(columns.value(row, 'src')) === undefined)
    return false;
  const { reader } = makeReaders(columns, readExchange(columns, row), timeZone);
  return 'row' in readRow(reader, { columns, row, position: 0, dayOfFile });
}

function addRow(byDay: Map<string, Row[]>, { row, day }: { readonly row: Row; readonly day: string }): void {
  const rows = byDay.get(day);
  if (rows === undefined) byDay.set(day, [row]);
  else rows.push(row);
}

/** Rejects belong to the largest part of the file, because the date of a rejected row may be wrong. */
function makeParts(
  exchange: string,
  { byDay, alsoByDay, rejects, joined }: Group,
  file: {
    readonly columns: FileColumns;
    readonly content: FileContent;
    readonly warnings: readonly string[];
    readonly passedOver: number;
  },
) {
  const { columns, content, warnings, passedOver } = file;
  const { format, dataSet } = columns;
  const days = [...byDay].sort(([, a], [, b]) => b.length - a.length);
  const [largest] = days;
  if (largest === undefined) {
    const problem = rejects[0]?.problems[0];
    throw badFile(`has no valid row; in the first, ${problem?.path ?? ''} ${problem?.message ?? ''}`);
  }
  const all = days.map(([day]) => day).sort();
  const span = { day: all[0] ?? largest[0], to: all.at(-1) ?? largest[0] };
  const parts = format.byTradingDay
    ? days.map(([day, rows]) => ({ day, to: day, rows }))
    : [{ ...span, rows: days.flatMap(([, rows]) => [...rows]) }];
  // Summed over the files of an import, so without a name.
  const skipped =
    passedOver === 0 ? [] : [`lines skipped: ${passedOver}; they ${format.passedOverWithout?.because}`];
  const fileName = format.byTradingDay ? `${content.name} of ${parts[0]?.day}` : content.name;
  return parts.map(({ day, to, rows }, at) => ({
    format: format.name,
    /** Of its format among those of trading days; null for a list. */
    rank: format.byTradingDay ? format.rank : null,
    /** The data set that its rows are records of. */
    dataSet: dataSet.name,
    table: dataSet.shapes[0].table,
    exchange,
    /** The trading day, or the first day of a list. */
    day,
    /** The same trading day, or the last day of a list. */
    to,
    rows,
    /** What its rows have for another table. */
    also:
      format.also === undefined || columns.also === null
        ? null
        : { table: dataSetNamed(format.also.dataSet).shapes[0].table, rows: alsoByDay.get(day) ?? [] },
    /** Problems of the file that are not fatal. */
    warnings: at === 0 ? [...warnings.map((warning) => `${fileName}: ${warning}`), ...skipped] : [],
    /** How many lines of the file are about nothing that is stored, and were skipped. */
    passedOver: at === 0 ? passedOver : 0,
    /**
     * The same object for all parts of a file; `readCsvFile` of its name and bytes returns the same parts.
     */
    content,
    rejects: at === 0 ? rejects : [],
    /** True if this is everything that the exchange traded on that day. */
    complete: format.complete && days.length === 1 && joined === 0,
    /** How many of its rejects have the cells of several rows, of which it is not known where one ends. */
    joined: at === 0 ? joined : 0,
    /** True if its symbols are scrip codes, because the file has no tickers. */
    withoutTickers: format.withoutTickers,
    /** Columns that the file lacks: their stored values are kept. */
    unknown: columns.unknown(dataSet.shapes[0].table.fields),
    /** Columns that the file rounds: a stored value that differs by less than this is kept. */
    rounded: roundedIn(columns),
    /** Columns that it may leave blank although there is a value: then the stored value is kept. */
    sometimesBlank: format.sometimesBlank,
  }));
}

/** The columns of a file that its format rounds, and by how much; of those that it lacks it says nothing. */
function roundedIn({ format, dataSet, has }: FileColumns): Record<string, number> {
  const { fields } = dataSet.shapes[0].table;
  const findColumn = (source: string) =>
    fields.find((field) => field.from === 'response' && field.source === source)?.column ?? source;
  return Object.fromEntries(
    Object.entries(format.rounded).flatMap(([source, within]) =>
      has(source) ? [[findColumn(source), within]] : [],
    ),
  );
}

/**
 * The day of a file whose rows do not have it: that of its title, else that in its name.
 *
 * @returns null where the rows may have it.
 * @throws PipelineError `unreadable` if there is none.
 */
function chooseDay(
  { format, dataSet, has }: FileColumns,
  name: string,
  titled: string | undefined,
): string | null {
  const { table } = dataSet.shapes[0];
  const dated = table.fields.find(({ column }) => column === table.dateColumn);
  const hasColumn = dated === undefined || dated.from !== 'response' || has(dated.source);
  if (format.day === undefined) {
    if (hasColumn) return null;
    throw badFile(`the header lacks ${columnsFor(format.columns, [dated.source]).join(' or ')}`);
  }
  // Each list of a publisher has a name of its own: any day in it is that of the list.
  const nameDay = dayInName(name, format) ?? (format.byTradingDay ? null : onlyDayIn(name));
  const day = titled ?? nameDay ?? format.day.otherwise ?? null;
  if (day !== null || hasColumn) return day;
  throw badFile(`has no date, neither in a column nor in a name such as ${exampleName(format)}`);
}

/** Lists may end with empty lines, or with U+001A, which DOS used to mark the end of a file. */
const isBlankRow = (row: FileRow) =>
  Object.values(row).every(
    (value) => typeof value !== 'string' || value.replaceAll('\u001A', '').trim() === '',
  );

/**
 * The rows of a line in which ends of lines are missing: of each as many cells as the header has, or one less where the
 * last cell of all rows is blank, because its comma stands before the next row. Elsewhere the last cell of a row and the
 * first of the next one have become one, and it is not known where it is to be cut.
 *
 * @param reading.isRow true if these cells are a row.
 * @param reading.endsBlank true if the last cell of all other rows is blank.
 * @returns null if the line cannot be rows.
 */
function splitJoinedRows(
  cells: readonly unknown[],
  header: readonly string[],
  reading: { readonly isRow: (row: FileRow) => boolean; readonly endsBlank: boolean },
  most = MOST_JOINED,
): readonly FileRow[] | null {
  const { isRow, endsBlank } = reading;
  for (const end of endsBlank ? [header.length, header.length - 1] : [header.length]) {
    if (cells.length < end || most === 0) continue;
    // Of a repeated name the first column is used, as everywhere.
    const row: FileRow = Object.fromEntries(
      header.map((name, at) => [name.trim(), (at < end ? cells[at] : null) ?? null] as const).reverse(),
    );
    if (!isRow(row)) continue;
    if (cells.length === end) return [row];
    const others = splitJoinedRows(cells.slice(end), header, reading, most - 1);
    if (others !== null) return [row, ...others];
  }
  return null;
}
