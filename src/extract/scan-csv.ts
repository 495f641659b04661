import { isUtf8 } from 'node:buffer';
import { PipelineError } from '../core/errors.ts';
import { asksInstruments } from '../operations/operation.ts';
import type { RowsWriter } from '../operations/rows.ts';
import { countCells, looksLikeCsv, MAX_ROW_BYTES, MAX_ROWS, MAX_UNEVEN_ROWS, readCsv } from './csv.ts';
import { createCsvScanner } from './csv-values.ts';
import { createRecordScanner, type RecordScanner } from './record-scanner.ts';
import { MANY_PARSED, type Reading } from './scan-answer.ts';

const LONGEST_HEADER = 10_000;

/**
 * Reads the rows of an answer in CSV one by one from its bytes, as `scanAnswer` reads the records of JSON: rows that are
 * odd in any way are parsed one at a time, with the header.
 *
 * @returns how many records there are; null if the answer has to be parsed as a whole, and then everything that was
 *   written or handed over has to be discarded.
 */
export function scanCsv(
  body: Buffer,
  reading: Reading,
): { readonly records: number; readonly warnings: readonly string[]; readonly lineEnd: true } | null {
  const { operation, asked, timeZone, reader, observer, linesOf, take } = reading;
  if (asksInstruments(operation) || asked.instruments.length > 0) return null;
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
  let scan: RecordScanner | null = null;
  let lines: RowsWriter | null = null;
  let records = 0;
  let parsed = 0;
  let rows = 0;
  for (let at = start; at < body.length; ) {
    rows += 1;
    // What `readCsv` counts besides: the header, and what follows the last line end.
    if (rows + 2 > MAX_ROWS) return null;
    let next = scan === null || lines === null ? -1 : scan(at, lines);
    if (next < 0) {
      next = body.indexOf('\n', at) + 1;
      const row = body.toString('utf8', at, next);
      const record = row.endsWith(separator) ? readRow(header, row) : null;
      if (record === null) return null;
      at = next;
      if (record === EMPTY) continue;
      take(records, record);
      if (scan === null) {
        const layout = reader.lastLayout();
        const cells = countCells(row);
        // So that no answer of short rows takes more memory than it has characters.
        if (layout === null || layout.shape === null || cells > names.length || names.length > 2 * cells)
          return null;
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
      }
      parsed += 1;
      if (parsed > MAX_UNEVEN_ROWS || (parsed > MANY_PARSED && 2 * parsed > records)) return null;
    } else if (next - at > MAX_ROW_BYTES) return null;
    else at = next;
    records += 1;
  }
  return { records, warnings: [], lineEnd: true };
}

const LINE_FEED = 10;

/** What an empty line is read as: it is no record. */
const EMPTY = Symbol('empty');

/** The record that a row becomes if it is parsed with its header; null if that is not a row alone, or broken. */
function readRow(header: string, row: string): object | typeof EMPTY | null {
  try {
    const records = readCsv(header + row);
    return records.length > 1 ? null : (records[0] ?? EMPTY);
  } catch (error) {
    if (error instanceof PipelineError) return null;
    throw error;
  }
}
