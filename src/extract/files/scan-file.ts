import { isUtf8 } from 'node:buffer';
import { PipelineError } from '../../core/errors.ts';
import type { DataSet } from '../../operations/operation.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { RowsWriter } from '../../operations/rows.ts';
import type { Scalar } from '../../operations/table.ts';
import { readPlainCsv } from '../csv.ts';
import { createCsvScanner } from '../csv-values.ts';
import { createLayouts } from '../layout.ts';
import { createRecordScanner } from '../record-scanner.ts';
import type { Reject } from '../types.ts';
import { columnsOf, type FileColumns, type FileRow } from './file-columns.ts';
import { exchangeOf, readAlso, readersOf, readRow } from './read-row.ts';

/** Where so many rows had to be read one by one, and half of all, it is faster to read the file as a whole. */
const MANY_READ = 100;

const LONGEST_HEADER = 10_000;

/**
 * Reads a file from its bytes to COPY text, where it holds one session of one exchange in rows without quotes that are
 * all as long as the header; rows that are odd otherwise are read one by one.
 *
 * @returns its rows, and in `also` what they have for another table; null where it is not so simple: then nothing is said
 *   about the file.
 */
export function scanFile(bytes: Buffer, name: string, timeZone: string) {
  const start = bytes.indexOf('\n') + 1;
  if (start === 0 || start > LONGEST_HEADER || bytes.includes('"') || !isUtf8(bytes)) return null;
  const header = bytes.toString('utf8', 0, start);
  const first = rowAt(bytes, header, start);
  const columns = first === null ? null : knownColumns(first.row, name);
  if (first === null || columns === null) return null;
  const exchange = exchangeOf(columns, first.row);
  const { reader, alsoReader } = readersOf(columns, exchange, timeZone);
  const found = readRow(reader, { columns, row: first.row, position: 0, named: null });
  if (!('row' in found)) return null;
  const { day } = found;
  const scannerOf = (dataSet: DataSet, record: object) => {
    const layout = createLayouts(dataSet)(record);
    const names = header
      .replace(/^\ufeff/, '')
      .split(',')
      .map((name) => name.trim());
    const positions = layout.keys.map((source) => names.indexOf(columns.nameOf(source)));
    return createRecordScanner(bytes, layout, {
      requested: { exchange, from: day, to: day, instruments: [], params: {}, calledOn: '' },
      timeZone,
      valuesOf: () =>
        createCsvScanner(bytes, {
          positions,
          cells: names.length,
          crLf: header.endsWith('\r\n'),
          blankHyphens: true,
        }),
      texts: columns.texts,
      only: onlyOf(columns, first.row),
    });
  };
  const { format, dataSet } = columns;
  const scan = scannerOf(dataSet, columns.record(first.row));
  if (scan === null) return null;
  const lines = new RowsWriter(dataSet.shapes[0].table);
  const besides = columns.also === null ? undefined : format.also;
  const alsoDataSet = besides === undefined ? null : dataSetNamed(besides.dataSet);
  const scanAlso = alsoDataSet === null ? null : scannerOf(alsoDataSet, columns.also?.(first.row) ?? {});
  const alsoLines = alsoDataSet === null ? null : new RowsWriter(alsoDataSet.shapes[0].table);
  const rejects: Reject[] = [];
  let position = 0;
  let alone = 0;
  for (let at = start; at < bytes.length; position++) {
    let next = scan(at, lines);
    const isScanned = next >= 0;
    if (isScanned && (alsoLines === null || (scanAlso?.(at, alsoLines) ?? -1) >= 0)) {
      at = next;
      continue;
    }
    alone += 1;
    const one = rowAt(bytes, header, at);
    if (one === null || (alone > MANY_READ && 2 * alone > position)) return null;
    const source = { columns, row: one.row, position, named: null };
    next = one.next;
    at = next;
    if (!isScanned) {
      if (exchangeOf(columns, one.row) !== exchange) return null;
      const result = readRow(reader, source);
      if (!('row' in result)) {
        rejects.push(result);
        continue;
      }
      if (result.day !== day) return null;
      lines.add(result.row);
    }
    const also = alsoLines === null ? null : readAlso(alsoReader, source);
    if (also === null) continue;
    if ('row' in also) alsoLines?.add(also.row);
    else rejects.push(also);
  }
  if (lines.ends.length === 0) return null;
  return { columns, exchange, day, rows: lines.finish(), also: alsoLines?.finish() ?? [], rejects };
}

/** The row that begins here, parsed on its own, and where the next one begins; null if it is unlike the others. */
function rowAt(
  bytes: Buffer,
  header: string,
  start: number,
): { readonly row: FileRow; readonly next: number } | null {
  const end = bytes.indexOf('\n', start);
  const next = end === -1 ? bytes.length : end + 1;
  const line = bytes.toString('utf8', start, next);
  const lineEnd = header.endsWith('\r\n') ? '\r\n' : '\n';
  const rows = readPlainCsv(header + line + (end === -1 ? lineEnd : ''));
  return rows?.length === 1 ? { row: rows[0] as FileRow, next } : null;
}

/** The columns of a file whose rows can be scanned: rows of a session, with its date; else null. */
function knownColumns(first: FileRow, name: string): FileColumns | null {
  let columns: FileColumns;
  try {
    columns = columnsOf({ name, header: Object.keys(first), isTitled: false }, first);
  } catch (error) {
    if (error instanceof PipelineError) return null;
    throw error;
  }
  const { bySession, day, withoutTickers, check, constants, passedOverWithout, greatestFirst } =
    columns.format;
  const others = [day, check, constants, passedOverWithout, greatestFirst];
  return bySession && !withoutTickers && others.every((one) => one === undefined) ? columns : null;
}

/** Rows of another segment or exchange are not scanned, so that they are parsed and their problem is reported. */
function onlyOf(columns: FileColumns, first: FileRow): ReadonlyMap<string, readonly Scalar[]> {
  const { udiff } = columns.dataSet;
  if (columns.format.exchange !== null || udiff === undefined) return new Map();
  return new Map<string, readonly Scalar[]>([
    ['sgmt', [null, udiff.segment]],
    ['src', [columns.value(first, 'src')]],
  ]);
}
