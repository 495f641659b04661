import { isUtf8 } from 'node:buffer';
import { PipelineError } from '../core/errors.ts';
import { asksInstruments } from '../operations/operation.ts';
import type { RowsWriter } from '../operations/rows.ts';
import {
  ABSENT_CELLS,
  createRowReader,
  looksLikeCsv,
  MAX_ROW_BYTES,
  MAX_ROWS,
  MAX_UNEVEN_ROWS,
  type RowReader,
} from './csv.ts';
import { createCsvScanner } from './csv-values.ts';
import { findLongLine } from './lines.ts';
import { createRecordScanner, type RecordScanner } from './record-scanner.ts';
import { MANY_PARSED, type Reading } from './scan-answer.ts';

const LONGEST_HEADER = 10_000;

/** The parser takes as long to start as to read this many bytes, which have to be there for each row parsed alone. */
const BYTES_OF_A_START = 500;

/**
 * Reads the rows of an answer in CSV one by one from its bytes, as `scanAnswer` reads the records of JSON: rows that are
 * odd in any way are parsed one at a time, with the header.
 *
 * @returns that the last line has an end; null if the answer has to be parsed as a whole, and then everything that was
 *   written or handed over has to be discarded.
 */
export function scanCsv(
  body: Buffer,
  reading: Reading,
): { readonly warnings: readonly string[]; readonly lineEnd: true } | null {
  const { operation, asked, timeZone, reader, observer, linesOf, take } = reading;
  if (asksInstruments(operation) || asked.instruments.length > 0) return null;
  // Refused when it is parsed as a whole, if there is room for that.
  if (findLongLine(body, MAX_ROW_BYTES) !== null) return null;
  const start = body.indexOf('\n') + 1;
  // A last line without an end may have been cut off, which is found out when the whole text is parsed.
  if (start === 0 || start > LONGEST_HEADER || body.at(-1) !== LINE_FEED || !isUtf8(body)) return null;
  const header = body.toString('utf8', 0, start);
  const separator = header.endsWith('\r\n') ? '\r\n' : '\n';
  const line = header.slice(header.startsWith('\ufeff') ? 1 : 0, -separator.length);
  if (/^[\s[{<]|["\r]/.test(line) || !looksLikeCsv(operation, line)) return null;
  const names = line.split(',').map((name) => name.trim());
  // Where names are repeated, all rows together tell which cells belong to which.
  if (names.length < 2 || new Set(names).size < names.length || names.includes('__proto__')) return null;
  const readRow = createRowReader(names, separator);
  let scan: RecordScanner | null = null;
  let lines: RowsWriter | null = null;
  let records = 0;
  let parsed = 0;
  let rows = 0;
  let absentInScanned = 0;
  let absent = 0;
  for (let at = start; at < body.length; ) {
    rows += 1;
    // What `readCsv` counts besides: the header, and what follows the last line end.
    if (rows + 2 > MAX_ROWS) return null;
    const blankEnd = endOfBlankLine(body, at, separator);
    if (blankEnd !== -1) {
      at = blankEnd;
      continue;
    }
    let next = scan === null || lines === null ? -1 : scan(at, lines);
    if (next >= 0) absent += absentInScanned;
    else {
      next = body.indexOf('\n', at) + 1;
      const row = body.toString('utf8', at, next);
      const read = row.endsWith(separator) ? readAlone(readRow, row) : null;
      if (read === null) return null;
      parsed += 1;
      if (parsed > MAX_UNEVEN_ROWS) return null;
      if (parsed > MANY_PARSED && parsed * BYTES_OF_A_START > next - start) return null;
      absent += Math.max(0, names.length - read.cells);
      take(records, read.record);
      if (scan === null) {
        const layout = reader.lastLayout();
        const { cells } = read;
        if (layout === null || layout.shape === null || cells > names.length) return null;
        const positions = layout.keys.map((key) => names.indexOf(key));
        scan = createRecordScanner(body, layout, {
          asked,
          timeZone,
          observed: { by: observer, isText: true },
          valuesOf: () =>
            createCsvScanner(body, { positions, cells, crLf: separator === '\r\n', blankHyphens: false }),
        });
        if (scan === null) return null;
        lines = linesOf(layout.shape.table);
        absentInScanned = names.length - cells;
      }
    }
    // Where `readCsv` may refuse them: no character of a text has more than three bytes.
    if (absent > ABSENT_CELLS && 3 * absent > body.length) return null;
    at = next;
    records += 1;
  }
  return { warnings: [], lineEnd: true };
}

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

/** Where the next line begins if this one is empty or blank, which is no record; -1 if it is not certain. */
function endOfBlankLine(body: Buffer, start: number, separator: '\n' | '\r\n'): number {
  let at = start;
  while (body[at] === SPACE || body[at] === TAB) at += 1;
  if (body[at] === CARRIAGE_RETURN) at += 1;
  else if (separator === '\r\n') return -1;
  return body[at] === LINE_FEED ? at + 1 : -1;
}

/** Null if it is broken alone, or no record. */
function readAlone(readRow: RowReader, row: string): ReturnType<RowReader> {
  try {
    return readRow(row);
  } catch (error) {
    if (error instanceof PipelineError) return null;
    throw error;
  }
}
