import { fullYear } from '../../core/days.ts';
import type { Field } from '../../operations/fields.ts';
import type { DataSet } from '../../operations/operation.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { SOURCE_AUDIT } from '../../operations/table.ts';
import { badFile } from '../diagnostics.ts';
import { printable } from '../sanitize.ts';
import { type FileFormat, FORMATS } from './formats.ts';

/** A row of a file, by the names of its header. */
export type FileRow = Readonly<Record<string, unknown>>;

/** The columns of one file, matched to the fields of its format. */
export interface FileColumns {
  readonly format: FileFormat;
  /** The data set that its rows are records of. */
  readonly dataSet: DataSet;
  /** The row as a record of the data set: its fields with their texts in the file, and null for blank cells. */
  record(row: FileRow): Record<string, string | null>;
  /** What the row has for another table, as a record of that data set; null if this file has nothing for it. */
  readonly also: ((row: FileRow) => Record<string, string | null>) | null;
  /** By field: the function that converts its text, if there is one. */
  readonly texts: ReadonlyMap<string, (text: string) => string>;
  /** The value that the row has for a field. */
  value(row: FileRow, source: string): string | null;
  /** The text of the row in a column. */
  text(row: FileRow, column: string): string | null;
  /** The file's column for a field, for messages; the field's name if there is none. */
  nameOf(source: string): string;
  /** The first needed column that is missing because the row breaks off; null for complete rows. */
  missingIn(row: FileRow): string | null;
  /** Columns of the table that this file lacks, or has less precisely than other files, without the source audit. */
  unknown(fields: readonly Field[]): string[];
}

/** Finds the names of a header as they are spelled there. */
function namesOf(header: readonly string[]): (column: string) => string | undefined {
  const byName = new Map(header.map((name) => [name.trim().replace(/\s+/g, ' ').toUpperCase(), name]));
  return (column) => byName.get(column.toUpperCase());
}

/** The format that a header belongs to; undefined if it is of none. */
export function formatOf(header: readonly string[]): FileFormat | undefined {
  const own = namesOf(header);
  return FORMATS.find(({ marks }) => marks.every((mark) => own(mark) !== undefined));
}

/** The segment of files that do not name it. */
const CASH_MARKET = 'CM';

/**
 * Finds the format that a header belongs to, and its columns. A file has one segment, that of its first row.
 *
 * @param dataSets whose files are known.
 * @param header of a known format, see `formatOf`.
 * @throws PipelineError `unreadable` for unknown segments, and for headers that lack a needed column.
 */
export function columnsOf(
  header: readonly string[],
  first: FileRow,
  dataSets: readonly DataSet[],
): FileColumns {
  const own = namesOf(header);
  const format = formatOf(header);
  if (format === undefined) throw new Error('a file of no known format was not refused');
  const segment = textOf(first[own('Sgmt') ?? '']) ?? CASH_MARKET;
  const dataSet =
    format.dataSet === null ? dataSetOfSegment(dataSets, segment) : dataSetNamed(format.dataSet);
  const needs = [...new Set([...format.marks, ...format.needs, ...keyColumns(format, dataSet)])];
  const lacking = needs.filter((column) => own(column) === undefined);
  if (lacking.length > 0) throw badFile(`the header lacks ${lacking.join(', ')}`);
  const needed = needs.map((column) => own(column) as string);
  const readDay = format.bySession || format.exchange === null ? fileDay : listDay;
  const presentOf = (dataSet: DataSet, fields: FileFormat['fields']) =>
    Object.entries(fields).flatMap(([source, field]) => {
      const column = own(field.column) ?? own(field.orColumn ?? field.column);
      if (column === undefined) return [];
      return [{ source, column, read: isDay(dataSet, source) ? readDay : field.read }];
    });
  const recordOf = (fields: ReturnType<typeof presentOf>) => (row: FileRow) => {
    const record: Record<string, string | null> = {};
    for (const { source, column, read } of fields) record[source] = textOf(row[column], read);
    return record;
  };
  const present = presentOf(dataSet, format.fields);
  const also =
    format.also === undefined ? [] : presentOf(dataSetNamed(format.also.dataSet), format.also.fields);
  const hasAll = also.length > 0 && also.length === Object.keys(format.also?.fields ?? {}).length;
  const audit: readonly string[] = SOURCE_AUDIT;
  const found = new Map([...also, ...present].map((one) => [one.source, one]));
  return {
    format,
    dataSet,
    record: recordOf(present),
    also: hasAll ? recordOf(also) : null,
    texts: new Map(
      [...found].flatMap(([source, { read }]) => (read === undefined ? [] : [[source, read] as const])),
    ),
    value(row, source) {
      const one = found.get(source);
      return one === undefined ? null : textOf(row[one.column], one.read);
    },
    text: (row, column) => textOf(row[own(column) ?? '']),
    nameOf: (source) => found.get(source)?.column ?? source,
    missingIn: (row) => needed.find((column) => row[column] === null) ?? null,
    unknown: (fields) =>
      fields
        .filter(({ from, column }) => from === 'response' && !audit.includes(column))
        .filter((field) => {
          const source = field.from === 'response' ? field.source : '';
          return !found.has(source) || format.vague.includes(source);
        })
        .map(({ column }) => column),
  };
}

function dataSetOfSegment(dataSets: readonly DataSet[], segment: string): DataSet {
  const found = dataSets.find(({ udiff }) => udiff?.segment === segment);
  if (found !== undefined) return found;
  const known = dataSets.flatMap(({ udiff }) => udiff?.segment ?? []);
  throw badFile(`is of the segment ${printable(segment.slice(0, 40))}; known are ${known.join(' and ')}`, {
    unknownSegment: segment,
    unknownForm: `segment ${segment.slice(0, 40)}`,
  });
}

/** The columns that distinguish the rows of a segment: without one of them, some would be taken for others. */
function keyColumns({ dataSet, fields }: FileFormat, { shapes }: DataSet): string[] {
  if (dataSet !== null) return [];
  const { table } = shapes[0];
  return table.fields
    .filter((field) => table.key.includes(field.column))
    .flatMap((field) => (field.from === 'response' ? (fields[field.source]?.column ?? []) : []));
}

/** True if this field of a data set is a day. */
const isDay = ({ shapes }: DataSet, source: string) =>
  shapes[0].table.fields.some(
    (field) => field.from === 'response' && field.source === source && field.kind === 'date',
  );

/** The text of a cell; null for a blank cell and for `-`, which mean that there is no value. */
function textOf(value: unknown, read?: FileFormat['fields'][string]['read']): string | null {
  const text = typeof value === 'string' ? value.trim() : '';
  if (text === '' || text === '-') return null;
  return read === undefined ? text : read(text);
}

/**
 * The same for lists of the exchanges, some of which have `17/12/2020`. Elsewhere, slashes are from a spreadsheet, which
 * may write the month first.
 */
const listDay = (text: string) => fileDay(text.replace(/^(\d+)\/(\d+)\/(\d{4})$/, '$1-$2-$3'));

/** The name of a month, or its first three letters. */
const MONTH =
  /^(?:[a-z]{3}|january|february|march|april|june|july|august|september|october|november|december)$/i;

/**
 * Converts days as files have them (`05-Feb-21`, `01 Jan 2016`, `17-12-2020`) to the forms that days of responses have.
 * In files numbers begin with the day, in responses with the month. Other texts stay as they are.
 */
function fileDay(text: string): string {
  const [, day = '', month = '', year = ''] = /^(\d{1,2})[- ](\w{1,9})[- ](\d{4}|\d{2})$/.exec(text) ?? [];
  if (day === '') return text;
  if (MONTH.test(month)) return `${day}-${month.slice(0, 3)}-${fullYear(year)}`;
  if (!/^\d{1,2}$/.test(month) || year.length !== 4) return text;
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
}
