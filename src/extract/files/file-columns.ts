import { compileMaker, compileReader } from '../../core/compiled-objects.ts';
import { fullYear, MONTHS } from '../../core/days.ts';
import type { Field, Kind } from '../../declaration/fields.ts';
import type { DataSet } from '../../declaration/operation.ts';
import { SOURCE_AUDIT } from '../../declaration/table.ts';
import { isShortDecimal, trimmed } from '../../declaration/value-readers.ts';
import { dataSetNamed, dataSets } from '../../operations/registry.ts';
import { badFile } from '../diagnostics.ts';
import { printable } from '../sanitize.ts';
import {
  FILE_UNITS,
  type FileColumnNames,
  type FileFormat,
  type FileRecord,
  type FileRow,
} from './file-format.ts';
import { dayInName, findFormat, findNames } from './formats.ts';

/** The columns of one file, matched to the fields of its format. */
export type FileColumns = ReturnType<typeof findColumns>;

/** The segment of files that do not name it. */
const CASH_MARKET = 'CM';

/** A field that a file has. */
interface PresentField {
  readonly source: string;
  readonly column: string;
  readonly isNumber: boolean;
  readonly read: ((text: string) => string) | undefined;
}

/** A file whose format is known. */
interface KnownFile {
  readonly name: string;
  readonly format: FileFormat;
  /** Finds the name of a column as the file spells it. */
  readonly findName: (column: string) => string | undefined;
}

/**
 * Finds the format that a header belongs to, and its columns. A file has one segment, that of its first row.
 *
 * @param file with the header of a known format, see `findFormat`.
 * @throws PipelineError `unreadable` for unknown segments, and for headers that lack a needed column.
 */
export function findColumns(
  {
    name,
    header,
    isTitled,
  }: { readonly name: string; readonly header: readonly string[]; readonly isTitled: boolean },
  first: FileRow,
) {
  const format = findFormat(header, name, isTitled);
  if (format === undefined) throw new Error('a file of no known format was not refused');
  const findName = findNames(header);
  const file = { name, format, findName };
  const segment = readCell(first[findName('Sgmt') ?? '']) ?? CASH_MARKET;
  const dataSet = format.dataSet === null ? dataSetOfSegment(segment) : dataSetNamed(format.dataSet);
  const needed = findNeeded(file, dataSet);
  const fields = listFields(file, dataSet, format.columns);
  const { also, constants = {}, day } = format;
  const alsoFields = also === undefined ? [] : listFields(file, dataSetNamed(also.dataSet), also.columns);
  const hasAlso =
    also !== undefined && new Set(Object.values(also.columns).flat()).size === alsoFields.length;
  const fieldsBySource = new Map([...alsoFields, ...fields].map((field) => [field.source, field]));
  const known = new Set([...fields.map(({ source }) => source), ...Object.keys(constants)]);
  if (day !== undefined) known.add(day.field);
  const readNeeded = compileReader<unknown>(needed);
  const neededCells: unknown[] = needed.map(() => null);
  return {
    format,
    /** The first number of a row that has lost digits, with its column; null if there is none. */
    shortened: createShortenedFinder([...fields, ...alsoFields]),
    /** The data set that its rows are records of. */
    dataSet,
    /** The row as a record of the data set: its fields with their texts in the file, and null for blank cells. */
    record: createRecordMaker(fields, constants),
    /** What the row has for another table, as a record of that data set; null if this file has nothing for it. */
    also: hasAlso ? createRecordMaker(alsoFields) : null,
    /** The value that the row has for a field. */
    value(row: FileRow, source: string): string | null {
      const field = fieldsBySource.get(source);
      return field === undefined ? null : readCell(row[field.column], field.read);
    },
    /** The text of the row in a column. */
    text: (row: FileRow, column: string) => readCell(row[findName(column) ?? '']),
    /** True if the file has a column for a field. */
    has: (source: string) => fieldsBySource.has(source),
    /** The file's column for a field, for messages; the field's name if there is none. */
    nameOf: (source: string) => fieldsBySource.get(source)?.column ?? source,
    /** The first needed column that is missing because the row breaks off; null for complete rows. */
    missingIn(row: FileRow): string | null {
      readNeeded(row, neededCells);
      return needed[neededCells.indexOf(null)] ?? null;
    },
    /** Columns of the table that this file lacks, or has less precisely than other files, without the source audit. */
    unknown: (declared: readonly Field[]) =>
      declared
        .filter((field) => isUnknown(field, format, (source) => known.has(source)))
        .map(({ column }) => column),
  };
}

/** The file's names of the columns that it must have. @throws PipelineError `unreadable` if it lacks one. */
function findNeeded({ format, findName }: KnownFile, dataSet: DataSet): string[] {
  const needs = [...new Set([...format.marks, ...format.needs, ...keyColumns(format, dataSet)])];
  const needed = needs.map((column) => [column].flat().flatMap((name) => findName(name) ?? [])[0]);
  const lacking = needs.filter((_, at) => needed[at] === undefined);
  if (lacking.length > 0) {
    throw badFile(`the header lacks ${lacking.map((column) => [column].flat().join(' or ')).join(', ')}`);
  }
  return needed.filter((column) => column !== undefined);
}

/** The fields of a data set that a file has, each once. */
function listFields(file: KnownFile, { shapes }: DataSet, columns: FileColumnNames): PresentField[] {
  const { table } = shapes[0];
  const present = new Map<string, PresentField>();
  for (const [name, sources] of Object.entries(columns)) {
    const column = file.findName(name);
    if (column === undefined) continue;
    for (const source of [sources].flat()) {
      if (present.has(source)) continue;
      const field = table.fields.find(
        (declared) => declared.from === 'response' && declared.source === source,
      );
      const isNumber = field !== undefined && NUMBERS.has(field.kind);
      const isTradingDay = file.format.byTradingDay && field?.column === table.dateColumn;
      const read =
        field?.kind === 'date'
          ? dayReader(file.format, isTradingDay ? dayInName(file.name, file.format) : null)
          : textReader(file.format, source);
      present.set(source, { source, column, isNumber, read: read && rememberLast(read) });
    }
  }
  return [...present.values()];
}

/** Makes the function that makes a record of a row: of these fields, and of values that every record has. */
function createRecordMaker(
  fields: readonly PresentField[],
  constants: Readonly<Record<string, string>> = {},
): (row: FileRow) => FileRecord {
  const names = [...fields.map(({ source }) => source), ...Object.keys(constants)];
  const makeRecord = compileMaker<string | null>(names);
  const values = names.map((name) => constants[name] ?? null);
  const readCells = compileReader<unknown>(fields.map(({ column }) => column));
  const cells: unknown[] = fields.map(() => null);
  return (row) => {
    readCells(row, cells);
    for (let at = 0; at < fields.length; at++) {
      const { isNumber, read } = fields[at] as PresentField;
      let value = cells[at];
      if (isNumber && typeof value === 'string' && !isShortDecimal(value) && WITH_COMMAS.test(value))
        value = value.replaceAll(',', '');
      values[at] = readCell(value, read);
    }
    return makeRecord(values);
  };
}

/** Makes the function that finds the first number of a row that has lost digits. */
function createShortenedFinder(fields: readonly PresentField[]) {
  const columns = [...new Set(fields.flatMap(({ column, isNumber }) => (isNumber ? [column] : [])))];
  const readNumbers = compileReader<unknown>(columns);
  const numbers: unknown[] = columns.map(() => null);
  return (row: FileRow): { readonly column: string; readonly text: string } | null => {
    readNumbers(row, numbers);
    for (let at = 0; at < numbers.length; at++) {
      const text = numbers[at];
      if (typeof text === 'string' && !isShortDecimal(text) && hasLostDigits(text))
        return { column: columns[at] ?? '', text };
    }
    return null;
  };
}

/** True if a file does not have what a column is read or computed from, or less precisely than other files. */
function isUnknown(field: Field, { vague }: FileFormat, has: (source: string) => boolean): boolean {
  const audit: readonly string[] = SOURCE_AUDIT;
  if (field.from === 'request' || audit.includes(field.column)) return false;
  if (field.from === 'response') {
    return ![field.source, ...(field.orElse ?? [])].some(has) || vague.includes(field.source);
  }
  const sources: string[] = [];
  const note = (source: string) => {
    sources.push(source);
    return null;
  };
  field.value(note, note, new Map());
  return sources.length > 0 && !sources.some(has);
}

/** @throws PipelineError `unreadable` if no data set has the records of this segment. */
function dataSetOfSegment(segment: string): DataSet {
  const dataSet = dataSets.find(({ udiff }) => udiff?.segment === segment);
  if (dataSet !== undefined) return dataSet;
  const known = dataSets.flatMap(({ udiff }) => udiff?.segment ?? []);
  throw badFile(`is of the segment ${printable(segment.slice(0, 40))}; known are ${known.join(' and ')}`, {
    unknownForm: `segment ${segment.slice(0, 40)}`,
  });
}

/** The columns that distinguish the rows of a segment: without one of them, some would be taken for others. */
function keyColumns({ dataSet, columns }: FileFormat, { shapes }: DataSet): string[] {
  if (dataSet !== null) return [];
  const { key, fields } = shapes[0].table;
  const inKey = fields.flatMap((field) =>
    field.from === 'response' && key.includes(field.column) ? field.source : [],
  );
  return columnsFor(columns, inKey);
}

/** The columns in which files of a format have any of these fields. */
export const columnsFor = (columns: FileColumnNames, sources: readonly string[]): string[] =>
  Object.keys(columns).filter((column) =>
    [columns[column] ?? []].flat().some((source) => sources.includes(source)),
  );

/** A number with commas between its digits: `1,234.50`, and `1,23,234.50` in lakhs. */
const WITH_COMMAS = /^\s*[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?\s*$/;

const NUMBERS: ReadonlySet<Kind> = new Set(['int2', 'int4', 'int8', 'numeric']);

/**
 * Converts days to the form that days of responses have. Lists of the exchanges may have slashes, as in `17/12/2020`,
 * without saying so; elsewhere, slashes are from a spreadsheet, which may write the month first.
 *
 * @param dayOfFile the day in the name of the file: it decides where a day can be read both ways. NSE's index closes of
 *   some days in April 2023 have the month first, without slashes.
 */
function dayReader(
  { byTradingDay, exchange, hasSlashes = !byTradingDay && exchange !== null }: FileFormat,
  dayOfFile: string | null,
): (text: string) => string {
  return (text) => {
    const day = hasSlashes ? text.replace(/^(\d+)\/(\d+)\/(\d{4})$/, '$1-$2-$3') : text;
    const monthFirst = day.replace(/^(\d{1,2})-(\d{1,2})-(\d{4})$/, '$2-$1-$3');
    return fileDay(dayOfFile !== null && fileDay(monthFirst) === dayOfFile ? monthFirst : day);
  };
}

/** Converts the texts of a field to what they mean in the table; undefined if they stay as they are. */
function textReader({ units, values }: FileFormat, source: string): ((text: string) => string) | undefined {
  const unit = units?.[source];
  // Without touching the digits.
  if (unit !== undefined) return (text) => `${text}e${FILE_UNITS[unit]}`;
  const meanings = values?.[source];
  return meanings && ((text) => meanings[text.toUpperCase()] ?? text);
}

/** The same function, which is called only where the text is another than before: rows next to each other have the same day. */
function rememberLast(read: (text: string) => string): (text: string) => string {
  let last: { readonly text: string; readonly result: string } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, result: read(text) };
    return last.result;
  };
}

/** A number as a spreadsheet shows it in a narrow column. */
const SPREADSHEET_NUMBER = /^\s*[-+]?\d+(?:\.(\d*))?E\+?(\d+)\s*$/;

/**
 * True if a number has fewer digits than its exponent needs: 1.03E+07 may have been 10,345,678. Programs that write numbers as
 * short as they can be without loss, such as R and pandas, write a small e.
 */
function hasLostDigits(text: string): boolean {
  const [match, decimals = '', exponent] = SPREADSHEET_NUMBER.exec(text) ?? [];
  return match !== undefined && decimals.length < Number(exponent);
}

/** The text of a cell; null for a blank cell and for `-`, which mean that there is no value. */
function readCell(value: unknown, read?: PresentField['read']): string | null {
  const text = typeof value === 'string' ? trimmed(value) : '';
  if (text === '' || text === '-') return null;
  return read === undefined ? text : read(text);
}

/** The name of a month, or its first three letters. */
const MONTH =
  /^(?:[a-z]{3}|january|february|march|april|june|july|august|september|october|november|december)$/i;

/** `Aug 19,2022`, as titles have it. */
const MONTH_FIRST = /^([a-z]{3,9})\.? (\d{1,2}), ?(\d{4})$/i;

/**
 * Converts days as files have them (`05-Feb-21`, `01 Jan 2016`, `17-12-2020`) to the forms that days of responses have.
 * In files numbers begin with the day, in responses with the month. Other texts stay as they are.
 */
export function fileDay(text: string): string {
  const [, day = '', month = '', year = ''] =
    /^(\d{1,2})[- ](\w{1,9})[- ](\d{4}|\d{2})$/.exec(text.replace(MONTH_FIRST, '$2-$1-$3')) ?? [];
  const monthNumber = MONTH.test(month) ? MONTHS.indexOf(month.slice(0, 3).toLowerCase()) + 1 : 0;
  const isNumber = /^\d{1,2}$/.test(month) && year.length === 4;
  if (monthNumber === 0 && !isNumber) return text;
  return `${fullYear(year)}-${String(monthNumber || month).padStart(2, '0')}-${day.padStart(2, '0')}`;
}
