import type { Field, Kind } from './fields.ts';
import type { Row, Scalar, TableDefinition } from './table.ts';

const NEEDS_ESCAPE = /[\\\t\n\r]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\', t: '\t', n: '\n', r: '\r' };

/** Encodes a value in the text format of COPY. */
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

/** Decodes a value from `encodeValue`. A number that a double does not reproduce digit by digit stays text. */
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

/** Validated rows of one table: as objects or, if there are many, as COPY text. */
export type Rows = readonly Row[] | EncodedRows;

/**
 * Rows as COPY text, which takes a quarter of the memory of objects and no work of the garbage collector. Iterating
 * over them makes an object of each.
 */
export class EncodedRows implements Iterable<Row> {
  readonly table: TableDefinition;
  /** All lines without line breaks between them; the values in a line are separated by tabs. */
  readonly text: Buffer;
  /** Offset at which each line ends. */
  readonly ends: Uint32Array;
  /** Offset at which the key of each line ends; key columns come first. */
  readonly keyEnds: Uint32Array;
  /** How often each value occurs, for the columns from `countedColumns`. */
  readonly counts: ReadonlyMap<string, ReadonlyMap<Scalar, number>>;
  private duplicates: boolean | undefined;

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
    for (const values of this.texts())
      yield Object.fromEntries(
        fields.map((field, at) => [field.column, decodeValue(field, values[at] as string)]),
      );
  }

  /** The values of each line. */
  *texts(): Generator<readonly string[]> {
    let start = 0;
    for (const end of this.ends) {
      yield this.text.toString('utf8', start, end).split('\t');
      start = end;
    }
  }

  /** True if two rows have the same key, or that cannot be ruled out. Only for tables with keys of `COMPARED_KINDS`. */
  hasDuplicates(): boolean {
    this.duplicates ??= this.findDuplicates();
    return this.duplicates;
  }

  private findDuplicates(): boolean {
    const keys = new Set<string>();
    const numbers = this.table.fields
      .slice(0, this.table.key.length)
      .flatMap(({ kind }, at) => (kind === 'numeric' ? [at] : []));
    for (let at = 0; at < this.length; at += 1) {
      let key = this.text.toString('latin1', at === 0 ? 0 : this.ends[at - 1], this.keyEnds[at]);
      if (numbers.length > 0) {
        const texts = key.split('\t');
        for (const one of numbers) {
          const number = shortDecimal(texts[one] as string);
          if (number === null) return true;
          texts[one] = number;
        }
        key = texts.join('\t');
      }
      keys.add(key);
    }
    return keys.size < this.length;
  }
}

/** The values of each row as COPY text, in the order of the columns: quicker than objects to compare rows by. */
export function* textsOf(table: TableDefinition, rows: Rows): Generator<readonly string[]> {
  if (rows instanceof EncodedRows) yield* rows.texts();
  else for (const row of rows) yield table.fields.map(({ column }) => encodeValue(row[column] ?? null));
}

/** Kinds of key columns whose values are equal in Postgres only if they are equal here, numbers by `shortDecimal`. */
export const COMPARED_KINDS: ReadonlySet<Kind> = new Set([
  'text',
  'int2',
  'int4',
  'boolean',
  'date',
  'numeric',
]);

/** The shortest text of a plain decimal: 7.50 is 7.5. Null for other texts, because 1e1 and 10 are the same number. */
function shortDecimal(text: string): string | null {
  if (!/^(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return null;
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** How often each value of a column occurs, in the order of first occurrence. */
export function countValues(rows: Rows, column: string): ReadonlyMap<Scalar, number> {
  if (rows instanceof EncodedRows) {
    const counts = rows.counts.get(column);
    if (counts !== undefined) return counts;
  }
  const tally = new Tally(column);
  for (const row of rows) tally.add(row[column] ?? null);
  return tally.counts;
}

/** The columns whose values are counted as rows are written: they tell which days are loaded and how new rows are. */
export function countedColumns({ dateColumn }: TableDefinition): string[] {
  return [dateColumn, 'source_saved_at'].filter((column) => column !== null);
}

/** Counts values. A run of equal values needs only one access to the map. */
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

/** A larger buffer is not kept for the next writer. */
const LARGEST_KEPT = 16 * 1024 * 1024;

/** The buffer of the last writer, for the next one: a new buffer would have to be cleared first. */
let spare: Buffer | null = null;

/** Writes rows as COPY text. */
export class RowsWriter {
  readonly table: TableDefinition;
  readonly ends: number[] = [];
  readonly keyEnds: number[] = [];
  /** One for each column from `countedColumns`. */
  readonly tallies: readonly Tally[];
  /** The text written so far ends at `end`. */
  bytes: Buffer;
  end = 0;

  constructor(table: TableDefinition) {
    this.table = table;
    this.tallies = countedColumns(table).map((column) => new Tally(column));
    this.bytes = spare ?? Buffer.allocUnsafeSlow(FIRST_SIZE);
    spare = null;
  }

  /** Makes room for this many bytes after `end`. */
  reserve(bytes: number): void {
    if (this.end + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.end + bytes));
    this.bytes.copy(larger, 0, 0, this.end);
    this.bytes = larger;
  }

  /** Completes a line that the caller has written after `end`. The caller must also count its values in `tallies`. */
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

  /** Returns the rows. The writer must not be used afterwards. */
  finish(): EncodedRows {
    const rows = new EncodedRows(this);
    if (this.bytes.length <= LARGEST_KEPT) spare = this.bytes;
    return rows;
  }
}
