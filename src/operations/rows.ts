import type { Field } from './fields.ts';
import type { Row, Scalar, TableDefinition } from './table.ts';

const NEEDS_ESCAPE = /[\\\t\n\r]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\', t: '\t', n: '\n', r: '\r' };

/** One value in COPY's text format. */
export function encodeValue(value: Scalar): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') {
    return NEEDS_ESCAPE.test(value)
      ? value.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] as string)
      : value;
  }
  if (typeof value === 'boolean') return value ? 't' : 'f';
  return String(value);
}

/** The value that `encodeValue` wrote; a number whose digits a double does not print again stays text. */
function decodeValue({ kind }: Field, text: string): Scalar {
  if (text === '\\N') return null;
  switch (kind) {
    case 'boolean':
      return text === 't';
    case 'text':
    case 'date':
    case 'datetime':
      return text.replace(/\\(.)/g, (_, letter: string) => ESCAPED[letter] as string);
    default:
      return String(Number(text)) === text ? Number(text) : text;
  }
}

/** Validated rows of one table: objects, or, where there are many, the text that COPY takes. */
export type Rows = readonly Row[] | EncodedRows;

/**
 * Rows as COPY text, a quarter of the size they have as objects and nothing for the garbage collector to walk through.
 * Whoever needs their values iterates, which makes an object of each.
 */
export class EncodedRows implements Iterable<Row> {
  readonly table: TableDefinition;
  /** The lines one behind the other: values separated by tabs, without line ends. */
  readonly text: Buffer;
  /** Where each line ends. */
  readonly ends: Uint32Array;
  /** Where the values of each line's key end, which are its first. */
  readonly keyEnds: Uint32Array;
  /** How often each value occurs, of the columns of `countedColumns`. */
  readonly counts: ReadonlyMap<string, ReadonlyMap<Scalar, number>>;

  constructor(writer: RowsWriter) {
    this.table = writer.table;
    this.text = Buffer.from(writer.bytes.subarray(0, writer.end));
    this.ends = Uint32Array.from(writer.ends);
    this.keyEnds = Uint32Array.from(writer.keyEnds);
    this.counts = new Map(writer.tallies.map((tally) => [tally.column, tally.counts]));
  }

  get length(): number {
    return this.ends.length;
  }

  *[Symbol.iterator](): Generator<Row> {
    const { fields } = this.table;
    let start = 0;
    for (const end of this.ends) {
      const values = this.text.toString('utf8', start, end).split('\t');
      yield Object.fromEntries(
        fields.map((field, at) => [field.column, decodeValue(field, values[at] as string)]),
      );
      start = end;
    }
  }

  /** Have two rows the same key? To be asked of tables only whose keys are the same if their text is. */
  hasDuplicates(): boolean {
    const keys = new Set<string>();
    for (let at = 0; at < this.length; at += 1) {
      keys.add(this.text.toString('latin1', at === 0 ? 0 : this.ends[at - 1], this.keyEnds[at]));
    }
    return keys.size < this.length;
  }
}

/** How often each value of a column occurs, in the order in which they are met. */
export function countValues(rows: Rows, column: string): ReadonlyMap<Scalar, number> {
  if (rows instanceof EncodedRows) {
    const counts = rows.counts.get(column);
    if (counts !== undefined) return counts;
  }
  const tally = new Tally(column);
  for (const row of rows) tally.add(row[column] ?? null);
  return tally.counts;
}

/** The columns in which all rows are looked at: they decide which days are concerned, and which values are the newer ones. */
export function countedColumns({ dateColumn }: TableDefinition): string[] {
  return [dateColumn, 'source_saved_at'].filter((column) => column !== null);
}

/** Counts values; neighbours that are the same are counted without a look into the map. */
class Tally {
  readonly column: string;
  private readonly byValue = new Map<Scalar, number>();
  private last: Scalar = null;
  private times = 0;

  constructor(column: string) {
    this.column = column;
  }

  add(value: Scalar): void {
    if (value !== this.last) this.flush();
    this.last = value;
    this.times += 1;
  }

  get counts(): ReadonlyMap<Scalar, number> {
    this.flush();
    return this.byValue;
  }

  private flush(): void {
    if (this.times > 0) this.byValue.set(this.last, (this.byValue.get(this.last) ?? 0) + this.times);
    this.times = 0;
  }
}

const FIRST_SIZE = 256 * 1024;

/** Beyond this it is not kept for the next writer. */
const LARGEST_KEPT = 16 * 1024 * 1024;

/** What the last writer has written into: for the next, as a new one of its size would have to be cleared first. */
let spare: Buffer | null = null;

/** Writes rows as COPY text. */
export class RowsWriter {
  readonly table: TableDefinition;
  readonly ends: number[] = [];
  readonly keyEnds: number[] = [];
  /** Those of `countedColumns`. */
  readonly tallies: readonly Tally[];
  /** What is written so far stands before `end`. */
  bytes: Buffer;
  end = 0;

  constructor(table: TableDefinition) {
    this.table = table;
    this.tallies = countedColumns(table).map((column) => new Tally(column));
    this.bytes = spare ?? Buffer.allocUnsafeSlow(FIRST_SIZE);
    spare = null;
  }

  /** Makes room for so many bytes behind the end. */
  reserve(bytes: number): void {
    if (this.end + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.end + bytes));
    this.bytes.copy(larger, 0, 0, this.end);
    this.bytes = larger;
  }

  /** Ends a line that was written behind the end. Its values are to be counted in the tallies, too. */
  endLine(keyEnd: number, end: number): void {
    this.keyEnds.push(keyEnd);
    this.ends.push(end);
    this.end = end;
  }

  /** Writes a row. */
  add(row: Row): void {
    const texts = this.table.fields.map(({ column }) => encodeValue(row[column] ?? null));
    const line = texts.join('\t');
    const key = texts.slice(0, this.table.key.length).join('\t');
    this.reserve(3 * line.length);
    this.endLine(this.end + Buffer.byteLength(key), this.end + this.bytes.write(line, this.end));
    for (const tally of this.tallies) tally.add(row[tally.column] ?? null);
  }

  /** The rows; nothing may be written any more. */
  finish(): EncodedRows {
    const rows = new EncodedRows(this);
    if (this.bytes.length <= LARGEST_KEPT) spare = this.bytes;
    return rows;
  }
}
