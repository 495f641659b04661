import { parse } from 'csv-parse/sync';
import { type Day, isDay } from '../core/days.ts';
import { messageOf, usageError } from '../core/errors.ts';

/** Exchanges with a calendar of their own; any other name follows NSE. */
export const EXCHANGES = ['NSE', 'BSE'] as const;

export type Exchange = (typeof EXCHANGES)[number];

/** One line of a calendar file: a day for which the Monday-to-Friday rule, or an earlier file, is wrong. */
export interface Entry {
  /** `*` means every exchange; a line that names an exchange overrides it. */
  readonly exchange: Exchange | '*';
  readonly day: Day;
  readonly kind: 'session' | 'holiday';
}

interface Line {
  readonly cells: readonly string[];
  /** Line number in the file, from 1. */
  readonly at: number;
}

const HEADER = 'exchange,date,kind,note';
const HEADER_WITHOUT_NOTE = 'exchange,date,kind';

/**
 * Parses a calendar file: CSV with the header `exchange,date,kind,note`. Blank lines and lines that start with `#` are
 * skipped. The note is for people; the column may be missing.
 *
 * @param name the file's name, for error messages.
 * @throws PipelineError `usage` that names the file and, line by line, all that is wrong with it.
 */
export function readEntries(text: string, name: string): Entry[] {
  const [header, ...lines] = split(text, name);
  const names = header?.cells.join(',').toLowerCase() ?? '';
  if (names !== HEADER && names !== HEADER_WITHOUT_NOTE) {
    throw usageError(`calendar file ${name}, line ${header?.at ?? 1}: the header must be "${HEADER}"`);
  }
  const problems: string[] = [];
  const seen = new Map<string, number>();
  const entries = lines.flatMap(({ cells, at }) => {
    const entry = readLine(cells);
    if (typeof entry === 'string') {
      problems.push(`line ${at}: ${entry}`);
      return [];
    }
    const key = `${entry.exchange} ${entry.day}`;
    const before = seen.get(key);
    if (before !== undefined) problems.push(`line ${at}: ${key} is already listed on line ${before}`);
    seen.set(key, at);
    return [entry];
  });
  if (problems.length > 0) throw usageError(`calendar file ${name}, ${problems.join('; ')}`);
  return entries;
}

function split(text: string, name: string): Line[] {
  const lines: Line[] = [];
  try {
    parse(text, {
      bom: true,
      comment: '#',
      // Notes may hold a `#`.
      comment_no_infix: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      on_record: (cells: string[], { lines: at }) => {
        lines.push({ cells, at });
        return null;
      },
    });
    return lines;
  } catch (error) {
    throw usageError(`calendar file ${name} is not valid CSV: ${messageOf(error)}`);
  }
}

/** @returns the entry, or a sentence that says what is wrong with the line. */
function readLine(cells: readonly string[]): Entry | string {
  const [exchangeCell = '', day = '', kindCell = ''] = cells;
  if (cells.length < 3 || cells.length > 4) {
    return `${cells.length} columns instead of 4 (quote a note that holds a comma)`;
  }
  const exchange = (['*', ...EXCHANGES] as const).find((known) => known === exchangeCell.toUpperCase());
  if (exchange === undefined) return `exchange "${exchangeCell}" is not ${EXCHANGES.join(', ')} or *`;
  if (!isDay(day)) return `"${day}" is not a date such as 2026-01-26`;
  const kind = (['session', 'holiday'] as const).find((known) => known === kindCell.toLowerCase());
  if (kind === undefined) return `kind "${kindCell}" is not session or holiday`;
  return { exchange, day, kind };
}
