import { UNKNOWN_DAY } from '../../core/days.ts';
import { EXCHANGES, exchangeNamed } from '../../core/exchanges.ts';
import type { DataSet } from '../../declaration/operation.ts';
import type { Row } from '../../declaration/table.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { badFile } from '../diagnostics.ts';
import { createRecordReader, type RecordReader, type RecordResult } from '../records.ts';
import { sanitizeRecord } from '../sanitize.ts';
import type { Problem, Reject } from '../types.ts';
import type { FileColumns } from './file-columns.ts';
import type { FileRow } from './file-format.ts';

/** A row of a table with its day, or a reject. */
type ReadRow = { readonly row: Row; readonly day: string } | Reject;

/** A row of a file, and its position. */
interface SourceRow {
  readonly columns: FileColumns;
  readonly row: FileRow;
  readonly position: number;
}

export interface DatedRow extends SourceRow {
  /** The day in the file's name, if the format has no date. */
  readonly dayOfFile: string | null;
}

/** So much of a cell is shown. */
const SHOWN = 40;

/** The exchange of a row. Files of other segments have the same header, and must not be loaded as shares. */
export function readExchange(columns: FileColumns, row: FileRow): string {
  const { format } = columns;
  if (format.exchange !== null) return format.exchange;
  const { udiff } = columns.dataSet;
  const segment = columns.value(row, 'sgmt');
  if (udiff !== undefined && segment !== null && segment !== udiff.segment)
    throw badFile(`has rows of the segments ${udiff.segment} and ${segment.slice(0, SHOWN)}`);
  const sentExchange =
    format.exchangeColumn === undefined
      ? columns.value(row, 'src')
      : columns.text(row, format.exchangeColumn);
  const listed = exchangeNamed(sentExchange);
  const exchange = listed === undefined || udiff === undefined ? listed : udiff.exchanges[listed];
  if (exchange === undefined) {
    throw badFile(
      `has rows of ${sentExchange?.slice(0, SHOWN) ?? 'an exchange that it does not name'}; known are ${EXCHANGES.join(' and ')}`,
    );
  }
  return exchange;
}

/** Makes the readers of an exchange's rows: of the rows themselves, and of what they have for another table. */
export function makeReaders({ dataSet, format: { also } }: FileColumns, exchange: string, timeZone: string) {
  const requested = { exchange, from: '', to: '', instruments: [], params: {}, calledOn: '' };
  const makeReader = (rowSet: DataSet) => createRecordReader(rowSet, requested, timeZone);
  return {
    reader: makeReader(dataSet),
    alsoReader: also === undefined ? null : makeReader(dataSetNamed(also.dataSet)),
  };
}

/** Reads a row of a file. */
export function readRow(reader: RecordReader, source: DatedRow): ReadRow {
  const { columns, row, dayOfFile } = source;
  const missing = columns.missingIn(row);
  const record = columns.record(row);
  const { adapt, check, day } = columns.format;
  if (dayOfFile !== null && day !== undefined) record[day.field] ??= dayOfFile;
  adapt?.(record, (column) => columns.text(row, column));
  const problem = check?.(record) ?? null;
  if (missing === null && problem === null) return makeResult(reader.read(record), source);
  return makeReject(source, [problem ?? { path: missing ?? '', message: 'is missing: the row breaks off' }]);
}

/** Reads what a valid row has for another table. */
export function readAlso(reader: RecordReader | null, source: SourceRow): ReadRow | null {
  const { columns, row } = source;
  return columns.also === null || reader === null ? null : makeResult(reader.read(columns.also(row)), source);
}

function makeResult(result: RecordResult, source: SourceRow): ReadRow {
  if (result.table !== null) {
    const { dateColumn } = result.table;
    return { row: result.row, day: dateColumn === null ? UNKNOWN_DAY : String(result.row[dateColumn]) };
  }
  const { columns } = source;
  return makeReject(
    source,
    result.problems.map(({ path, message }) => ({ path: columns.nameOf(path), message })),
  );
}

const makeReject = (
  { position, row }: Pick<SourceRow, 'position' | 'row'>,
  problems: readonly Problem[],
): Reject => ({ position, record: sanitizeRecord(row), problems });
