import { styleText } from 'node:util';
import Table from 'cli-table3';

/** A result, on stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Exactly one JSON document, on stdout. */
export function printJson(document: unknown): void {
  print(JSON.stringify(document, null, 2));
}

/** Something to know while waiting, on stderr: stdout is for results. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Bold on a terminal, plain elsewhere. */
export function bold(text: string): string {
  const plain = !process.stdout.isTTY || (process.env.NO_COLOR ?? '') !== '';
  return plain ? text : styleText('bold', text);
}

const NO_LINES = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' },
  ...{ 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '' },
  ...{ right: '', 'right-mid': '', middle: '  ' },
};

export type Cell = string | number | null;

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => Cell;
}

/** An aligned table without lines; numbers stand to the right, with thousands separators. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)));
  const isNumber = (_: unknown, at: number) =>
    cells.length > 0 && cells.every((row) => row[at] === null || typeof row[at] === 'number');
  const drawn = new Table({
    head: columns.map((column) => bold(column.head)),
    colAligns: columns.map((column, at) => (isNumber(column, at) ? 'right' : 'left')),
    chars: NO_LINES,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  drawn.push(
    ...cells.map((row) => row.map((cell) => (typeof cell === 'number' ? count(cell) : (cell ?? '')))),
  );
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
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

/** `4s`, `1m 20s`, `2h 05m`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2, '0')}s`;
  return `${Math.floor(whole / 3_600)}h ${String(Math.floor((whole % 3_600) / 60)).padStart(2, '0')}m`;
}

/** Waits until what was printed has left this process. */
export async function flush(): Promise<void> {
  await Promise.all(
    [process.stdout, process.stderr].map(
      (stream) => new Promise<void>((resolve) => void stream.write('', () => resolve())),
    ),
  );
}
