import { stripVTControlCharacters } from 'node:util';
import { largest } from '../core/iterables.ts';
import { count, escapeControls } from '../core/wording.ts';

export { clockTime, count, duration, momentText, plural, rangeText } from '../core/wording.ts';

/** Marks a text as bold; `print` removes the marks where bold cannot be shown. */
export function bold(text: string): string {
  return text === '' ? '' : `\u001b[1m${text}\u001b[22m`;
}

type Cell = string | number | null;

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => Cell;
  /** Whether to align to the right; by default, if all values are numbers. */
  readonly right?: boolean;
}

/** The members of a row that a cell can show. */
type CellName<Row> = { [Name in keyof Row]: Row[Name] extends Cell ? Name : never }[keyof Row] & string;

/** Columns that show members of a row under the names of these members. */
export function memberColumns<Row>(...names: CellName<Row>[]): Column<Row>[] {
  return names.map((name) => ({ head: name, cell: (row) => row[name] as Cell }));
}

/** The longest line that is printed, also to files and mails, which have no width. */
export const PAGE_WIDTH = 80;

/** No narrower than the names of operations. */
const LEAST_PAGE_WIDTH = 40;

/** PAGE_WIDTH, or the width of a terminal that is narrower. */
export function pageWidth(): number {
  const { isTTY, columns = PAGE_WIDTH } = process.stdout;
  return isTTY === true && columns > 0
    ? Math.max(LEAST_PAGE_WIDTH, Math.min(PAGE_WIDTH, columns))
    : PAGE_WIDTH;
}

/**
 * Breaks lines that are wider than the page, between words. The next lines are indented by two more than their line, or
 * to the second column of a line such as `exchanges    NSE, BSE`. A word that is longer than the page, such as an
 * address, gets a line of its own.
 */
export function wrap(text: string): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [start = '', indent = ''] = /^( *)(?:\S+(?: \S+){0,2} {2,}(?=\S))?/.exec(line) ?? [];
      return wrapLine(line, pageWidth(), start === indent ? indent.length + 2 : measureWidth(start));
    })
    .join('\n');
}

function wrapLine(line: string, width: number, hang: number): string[] {
  if (measureWidth(line) <= width) return [line];
  const lines: string[] = [];
  let current = '';
  for (const word of line.match(/ *\S+/g) ?? []) {
    if (current === '' || measureWidth(current + word) <= width) {
      current += word;
      continue;
    }
    lines.push(current);
    const next = word.trimStart();
    current = ' '.repeat(Math.max(0, Math.min(hang, width - measureWidth(next)))) + next;
  }
  return [...lines, current];
}

/** The examples at the end of the help of a command. */
export function examples(lines: readonly string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map(exampleText).join('\n')}`;
}

/** Breaks an example that is wider than the page into several lines, as a shell reads them, its comment above it. */
function exampleText(line: string): string {
  const whole = `  $ ${line}`;
  if (whole.length <= pageWidth()) return whole;
  const [command = '', comment] = line.split(/\s+# /);
  const lines = comment === undefined ? [] : [wrap(`  # ${comment}`).replaceAll('\n    ', '\n  # ')];
  return [...lines, commandText(`  $ ${command}`)].join('\n');
}

/** Breaks a command that is wider than the page into several lines, as a shell reads them, so that it can be pasted. */
export function commandText(line: string): string {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > pageWidth()) {
    const start = rest.search(/\S/) + 2;
    const last = (text: string) => rest.lastIndexOf(text, pageWidth() - 2);
    const end = last(' --') > start ? last(' --') : last(' ');
    if (end <= start) break;
    lines.push(`${rest.slice(0, end)} \\`);
    rest = `     ${rest.slice(end)}`;
  }
  return [...lines, rest].join('\n');
}

type DrawnColumn = ReturnType<typeof drawColumns>[number];

function drawColumns<Row>(columns: readonly Column<Row>[], rows: readonly Row[]) {
  return columns.map(({ head, cell, right: declared }) => {
    const values = rows.map(cell);
    const texts = values.map(cellText);
    const right =
      declared ?? (values.length > 0 && values.every((value) => value === null || typeof value === 'number'));
    return { head, texts, width: largest(texts.map(measureWidth), measureWidth(head)), right };
  });
}

/** The width of columns side by side. */
function tableWidth(drawn: readonly DrawnColumn[]): number {
  return drawn.reduce((sum, { width }) => sum + width + 2, -2);
}

/** A last column of text is not made narrower than this, nor than its head. */
const LEAST_WIDTH = 24;

/** The indentation of columns that stand below their row. */
const BELOW = '    ';

/**
 * Draws a table without lines; numbers are aligned to the right and have thousands separators. If it is wider than the
 * page, the last column is wrapped; columns that still do not fit are printed below each row, with their names if there
 * are several.
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const drawn = drawColumns(columns, rows);
  let beside = drawn.length;
  while (beside > 1 && leastWidth(drawn.slice(0, beside)) > pageWidth()) beside -= 1;
  const below = drawn.slice(beside);
  const others = drawn.slice(0, beside - 1);
  const last = drawn[beside - 1];
  if (last === undefined) return '';
  const start = others.length === 0 ? 0 : tableWidth(others) + 2;
  const room = Math.min(last.width, Math.max(pageWidth() - start, 1));

  const heads = drawn.slice(0, beside).map((column) => padded(column, column.head, bold(column.head)));
  const [only] = below.length === 1 ? below : [];
  const headLines = [heads.join('  ').trimEnd(), ...(only === undefined ? [] : [BELOW + bold(only.head)])];
  const rowLines = rows.flatMap((_, at) => {
    const text = last.texts[at] ?? '';
    const fits = others.length === 0 || text.split(' ').every((word) => measureWidth(word) <= room);
    const [first = '', ...rest] = fits ? wrapLine(text, room, 0) : [];
    const cells = [...others.map((column) => padded(column, column.texts[at] ?? '')), padded(last, first)];
    return [
      cells.join('  ').trimEnd(),
      ...rest.map((line) => `${' '.repeat(start)}${line}`),
      ...(fits ? [] : belowLines(text)),
      ...below.flatMap((column) =>
        belowLines(column.texts[at] ?? '', only === undefined ? `${column.head}: ` : ''),
      ),
    ];
  });
  return [...headLines, ...rowLines].join('\n');
}

/** The least width of columns side by side: the last one may be wrapped. */
function leastWidth(drawn: readonly DrawnColumn[]): number {
  const last = drawn.at(-1);
  if (last === undefined || last.right) return tableWidth(drawn);
  return tableWidth(drawn) - Math.max(0, last.width - Math.max(LEAST_WIDTH, measureWidth(last.head)));
}

function padded({ width, right }: DrawnColumn, text: string, shown = text): string {
  const space = ' '.repeat(Math.max(0, width - measureWidth(text)));
  return right ? space + shown : shown + space;
}

function belowLines(text: string, name = ''): string[] {
  return text === '' ? [] : wrapLine(`${BELOW}${name}${text}`, pageWidth(), BELOW.length + 2);
}

/**
 * Draws a table of the first columns and as many others as fit on the page, in their order. Columns that are zero or
 * blank in every row are left out; those that do not fit become notes below the table.
 *
 * @param name names a row in these notes.
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
    if (tableWidth(drawColumns(wider, rows)) <= pageWidth()) columns = wider;
    else left.push(column);
  }
  const notes = rows.flatMap((row) => {
    const facts = left.flatMap(({ head, cell }) => {
      const value = cell(row);
      return isBlank(value) ? [] : [`${cellText(value)} ${head}`.trimEnd()];
    });
    return facts.length === 0 ? [] : [`${name(row)}: ${facts.join(', ')}`];
  });
  return [table(columns, rows), ...(notes.length === 0 ? [] : ['', ...notes])].join('\n');
}

function isBlank(cell: Cell): boolean {
  return cell === null || cell === '' || cell === 0;
}

/** A cell as one line, whatever the source put into it. */
function cellText(cell: Cell): string {
  return typeof cell === 'number'
    ? count(cell)
    : escapeControls((cell ?? '').replace(/\s*[\r\n\t]+\s*/g, ' '));
}

/** The number of characters a terminal shows, without those that make text bold. */
function measureWidth(text: string): number {
  // Most texts are of ASCII, and help measures thousands of words.
  return /^[ -~]*$/.test(text) ? text.length : [...stripVTControlCharacters(text)].length;
}

/** How many things of one kind are listed among others. */
const MOST_LISTED = 20;

/** A line for each of the first items, and one that says how many more there are. */
export function firstLines<Item>(
  items: readonly Item[],
  line: (item: Item) => string,
  more: (left: number) => string = (left) => `  … and ${left} more`,
): string[] {
  const left = items.length - MOST_LISTED;
  return [...items.slice(0, MOST_LISTED).map(line), ...(left > 0 ? [more(left)] : [])];
}
