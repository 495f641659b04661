const [TAB, LINE_END, BACKSLASH, LETTER_N] = [9, 10, 92, 78];

/** If most of this many rows have values of their own, the further rows of the group are not compared with them. */
const SAMPLE = 16_384;

/** A row without a value. */
export const NULL = -1;

/**
 * The texts of a column in a row group, as COPY writes them: each distinct one once, and which of them each row has.
 * Values repeat so often that only the distinct ones become strings and values, which would take most of the time and of
 * the memory.
 */
export class ColumnTexts {
  /** Which text each row has. */
  readonly rows: Int32Array;
  /** How many distinct texts there are. */
  count = 0;
  /** How many rows have no value. */
  nulls = 0;
  /** The bytes of the values of all rows, and of the distinct ones. */
  total = 0;
  size = 0;
  #bytes = Buffer.allocUnsafe(1_024);
  readonly #ends: Int32Array;
  readonly #hashes: Int32Array;
  /** A hash table with open addressing: 1 more than the number of a text, 0 where there is none. */
  #slots = new Int32Array(256);
  #isDistinct = false;

  constructor(rows: number) {
    this.rows = new Int32Array(rows);
    this.#ends = new Int32Array(rows);
    this.#hashes = new Int32Array(rows);
  }

  /** Adds the value of a row, which begins at `start`. @returns where it ends. */
  add(row: number, lines: Buffer, start: number): number {
    let hash = 0;
    let end = start;
    for (let byte = lines[end] as number; byte !== TAB && byte !== LINE_END; byte = lines[end] as number) {
      hash = Math.imul(hash ^ byte, 0x01000193);
      end += 1;
    }
    const length = end - start;
    if (length === 2 && lines[start] === BACKSLASH && lines[start + 1] === LETTER_N) {
      this.rows[row] = NULL;
      this.nulls += 1;
      return end;
    }
    this.total += length;
    if (row === SAMPLE) this.#isDistinct = this.count > 0.75 * row;
    if (this.#isDistinct) {
      this.rows[row] = this.count;
      this.#append(lines, start, end);
      return end;
    }
    const last = this.#slots.length - 1;
    // The lower bits alone differ too little.
    let slot = (hash ^ (hash >>> 15)) & last;
    for (let index = this.#slots[slot] as number; index !== 0; index = this.#slots[slot] as number) {
      if (this.#hashes[index - 1] === hash && this.#isText(index - 1, lines, start, length)) {
        this.rows[row] = index - 1;
        return end;
      }
      slot = (slot + 1) & last;
    }
    this.rows[row] = this.count;
    this.#hashes[this.count] = hash;
    this.#append(lines, start, end);
    this.#slots[slot] = this.count;
    if (this.count * 2 > last) this.#grow();
    return end;
  }

  #isText(index: number, lines: Buffer, start: number, length: number): boolean {
    const textStart = index === 0 ? 0 : (this.#ends[index - 1] as number);
    if ((this.#ends[index] as number) - textStart !== length) return false;
    for (let at = 0; at < length; at += 1)
      if (this.#bytes[textStart + at] !== lines[start + at]) return false;
    return true;
  }

  #append(lines: Buffer, start: number, end: number): void {
    const size = this.size + end - start;
    if (size > this.#bytes.length)
      this.#bytes = Buffer.concat(
        [this.#bytes.subarray(0, this.size)],
        Math.max(size, this.#bytes.length * 2),
      );
    // Values are short: a call of `copy` takes longer.
    for (let from = start, to = this.size; from < end; from += 1, to += 1)
      this.#bytes[to] = lines[from] as number;
    this.size = size;
    this.#ends[this.count] = size;
    this.count += 1;
  }

  #grow(): void {
    const slots = new Int32Array(this.#slots.length * 4);
    const last = slots.length - 1;
    for (const [index, hash] of this.#hashes.subarray(0, this.count).entries()) {
      let slot = (hash ^ (hash >>> 15)) & last;
      while (slots[slot] !== 0) slot = (slot + 1) & last;
      slots[slot] = index + 1;
    }
    this.#slots = slots;
  }

  /** The values of the distinct texts. @param read takes a text without escapes, a character for each byte. */
  values<T>(read: (text: string) => T): T[] {
    const all = this.#bytes.toString('latin1', 0, this.size);
    let start = 0;
    return Array.from(this.#ends.subarray(0, this.count), (end) => {
      const text = all.slice(start, end);
      start = end;
      return read(text.includes('\\') ? unescaped(text) : text);
    });
  }

  /** Forgets everything, for the next row group. */
  clear(): void {
    this.nulls = 0;
    this.total = 0;
    this.size = 0;
    this.count = 0;
    this.#slots.fill(0);
    this.#isDistinct = false;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** Removes the escapes of COPY's text format. */
function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter);
}
