import { stripVTControlCharacters } from 'node:util';
import { writeOutControls } from '../core/controls.ts';
import { dayAt, timeAt } from '../core/days.ts';

/** Bold, as long as it is printed to a terminal; see `print`. */
export function bold(text: string): string {
  return text === '' ? '' : `\u001b[1m${text}\u001b[22m`;
}

export type Cell = string | number | null;

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => Cell;
}

/** An aligned table without lines; numbers are aligned to the right and have thousands separators. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)));
  const drawn = columns.map((column, at) => {
    const values = cells.map((row) => row[at] ?? null);
    const texts = values.map(cellText);
    const width = Math.max(widthOf(column.head), ...texts.map(widthOf));
    const right = values.length > 0 && values.every((value) => value === null || typeof value === 'number');
    const pad = (text: string, shown = text) => {
      const space = ' '.repeat(width - widthOf(text));
      return right ? space + shown : shown + space;
    };
    return [pad(column.head, bold(column.head)), ...texts.map((text) => pad(text))];
  });
  const lines = [0, ...rows.map((_, at) => at + 1)];
  return lines
    .map((line) =>
      drawn
        .map((column) => column[line] ?? '')
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Terminals are at least this wide; a table that is wider cannot be read there. */
const PAGE_WIDTH = 80;

/**
 * A table of the first columns and of as many others as fit on the page, in their order. Those that are
 * zero or blank in every row are left out; what does not fit is told in lines below the table.
 *
 * @param name of a row, for these lines.
 */
export function fittedTable<Row>(
  first: readonly Column<Row>[],
  others: readonly Column<Row>[],
  rows: readonly Row[],
  name: (row: Row) => string,
): string {
  let columns = [...first];
  const left: Column<Row>[] = [];
  for (const column of others) {
    if (rows.every((row) => isBlank(column.cell(row)))) continue;
    const wider = [...columns, column];
    if (tableWidth(wider, rows) <= PAGE_WIDTH) columns = wider;
    else left.push(column);
  }
  const notes = rows.flatMap((row) => {
    const facts = left.flatMap(({ head, cell }) => {
      const value = cell(row);
      return isBlank(value) ? [] : [`${cellText(value)} ${head}`];
    });
    return facts.length === 0 ? [] : [`${name(row)}: ${facts.join(', ')}`];
  });
  return [table(columns, rows), ...(notes.length === 0 ? [] : ['', ...notes])].join('\n');
}

function isBlank(cell: Cell): boolean {
  return cell === null || cell === '' || cell === 0;
}

function tableWidth<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): number {
  return Math.max(...stripVTControlCharacters(table(columns, rows)).split('\n').map(widthOf));
}

/** One line, whatever the source put into it. */
function cellText(cell: Cell): string {
  return typeof cell === 'number'
    ? count(cell)
    : writeOutControls((cell ?? '').replace(/\s*[\r\n\t]+\s*/g, ' '));
}

function widthOf(text: string): number {
  return [...text].length;
}

const wholeNumbers = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 });

/** `12,345` or `1.25`. */
export function count(value: number): string {
  return wholeNumbers.format(value);
}

/** `1 window`, `3 windows`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** `2025-02-27`, or `2025-02-20 to 2025-02-27`. */
export function rangeText({ from, to }: { readonly from: string; readonly to: string }): string {
  return from === to ? from : `${from} to ${to}`;
}

/** At most so many lines, and how many more there are. */
export function firstLines<Item>(
  items: readonly Item[],
  most: number,
  line: (item: Item) => string,
  more: (left: number) => string = (left) => `  … and ${left} more`,
): string[] {
  const left = items.length - most;
  return [...items.slice(0, most).map(line), ...(left > 0 ? [more(left)] : [])];
}

/** `4s`, `1m 20s`, `2h 05m`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2, '0')}s`;
  return `${Math.floor(whole / 3_600)}h ${String(Math.floor((whole % 3_600) / 60)).padStart(2, '0')}m`;
}

/** `2025-02-27 19:00:00`: an ISO 8601 moment on the clocks of a zone. */
export function momentText(iso: string, timeZone: string): string {
  const seconds = Math.floor(Date.parse(iso) / 1000);
  return `${dayAt(seconds, timeZone)} ${timeAt(seconds, timeZone)}`;
}

/** `19:00 IST`: the time of day of an ISO 8601 moment, with the zone it is told in. */
export function clockTime(iso: string, timeZone: string): string {
  return `${timeAt(Date.parse(iso) / 1000, timeZone).slice(0, 5)} ${zoneName(iso, timeZone)}`;
}

/** Null while workers are alive; otherwise a sentence that says since when none is. */
export function noWorkersText(
  { seen, lastSeenAt }: { readonly seen: number; readonly lastSeenAt: string | null },
  timeZone: string,
): string | null {
  if (seen > 0) return null;
  const last = lastSeenAt === null ? '' : `, the last one at ${momentText(lastSeenAt, timeZone)}`;
  return `no worker has been seen for a minute${last}; "eod up" starts one`;
}

/** `IST` for Asia/Kolkata. */
function zoneName(iso: string, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-IN', { timeZone, timeZoneName: 'short' }).formatToParts(
    Date.parse(iso),
  );
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? timeZone;
}
