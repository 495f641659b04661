import { parse } from 'csv-parse/sync';
import type { Operation } from '../operations/operation.ts';
import { tooLarge, unreadable } from './diagnostics.ts';
import { fitsAnyShape } from './layout.ts';

/** Rows one answer may hold; see the like limit for JSON. */
const MAX_ROWS = 2_000_000;

const OPTIONS = {
  bom: true,
  trim: true,
  skip_empty_lines: true,
  // The header can hold more names than the rows have fields (field notes).
  relax_column_count: true,
  // A quote inside an unquoted name (`7.5" PIPES`) is a character like any other.
  relax_quotes: true,
} as const;

/** Does this text begin with a header row that names a record of the operation? */
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
 * Rows as records keyed by the header's names, every value as text. A name that the header repeats
 * counts once, at its first place; a row shorter than the header leaves the rest null.
 *
 * @throws PipelineError `unreadable` for CSV that cannot be parsed, or breaks off inside its last row.
 */
export function readCsv(text: string): object[] {
  if (countLines(text) > MAX_ROWS) throw tooLarge(`more than ${MAX_ROWS} rows`);
  let table: string[][];
  try {
    table = parse(text, OPTIONS);
  } catch (error) {
    throw unreadable(`broken CSV (${error instanceof Error ? error.message.slice(0, 200) : 'unknown'})`);
  }
  const [header = [], ...rows] = table;
  const first = rows[0];
  const last = rows.at(-1);
  if (first !== undefined && last !== undefined && last.length < first.length && !/[\r\n]\s*$/.test(text)) {
    throw unreadable('the CSV breaks off inside its last row', { cutShort: true });
  }
  const columns = header
    .map((name, index) => [name.trim(), index] as const)
    .filter(([name], index) => header.findIndex((other) => other.trim() === name) === index);
  return rows.map((row) => Object.fromEntries(columns.map(([name, index]) => [name, row[index] ?? null])));
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}
