import { DECIMAL, ESCAPED, NULL, STRING, type ValueScanner, WHOLE } from './scanned-values.ts';

// Declared in each scanner, because V8 looks up an imported constant at every use: a sixth of the time of scanning.
const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const BACKSLASH = 92;
const FIRST_BEYOND_ASCII = 128;

/** How the rows of a body are written. */
interface RowFormat {
  /** The position in the row of each key's cell; keys beyond the last cell have no value. */
  readonly positions: readonly number[];
  /** How many cells a row has. */
  readonly cells: number;
  /** True if lines end with a carriage return and a line feed. */
  readonly crLf: boolean;
  /** True if a hyphen alone is no value. */
  readonly blankHyphens: boolean;
}

/**
 * Finds the cells of rows in ASCII. Spaces and tabs around a cell are not part of it; an empty cell is no value. A cell
 * may be in quotes if it contains none. A record begins where its line does.
 */
export function createCsvScanner(
  body: Buffer,
  { positions, cells, crLf, blankHyphens }: RowFormat,
): ValueScanner {
  const keyAt = new Int32Array(cells).fill(-1);
  for (const [key, position] of positions.entries()) keyAt[position] = key;
  const types = new Uint8Array(positions.length);
  const froms = new Int32Array(positions.length);
  const tos = new Int32Array(positions.length);

  /** @returns the offset after the end of a line at this offset; -1 if no line ends here. */
  const endLine = (at: number): number => {
    if (at >= body.length) return at;
    if (!crLf) return body[at] === LINE_FEED ? at + 1 : -1;
    return body[at] === CARRIAGE_RETURN && body[at + 1] === LINE_FEED ? at + 2 : -1;
  };

  return {
    types,
    froms,
    tos,
    find(start) {
      let at = start;
      for (let cell = 0; ; ) {
        let byte = body[at] as number;
        while (byte === SPACE || byte === TAB) byte = body[++at] as number;
        if (byte === QUOTE) {
          const from = at + 1;
          let type = STRING;
          for (byte = body[++at] as number; byte !== QUOTE; byte = body[++at] as number) {
            if (!(byte >= SPACE && byte < FIRST_BEYOND_ASCII)) return -1;
            if (byte === BACKSLASH) type = ESCAPED;
          }
          const key = keyAt[cell] as number;
          if (key >= 0) {
            types[key] = at === from ? NULL : type;
            froms[key] = from;
            tos[key] = at;
          }
          at += 1;
          cell += 1;
          if (cell === cells) return endLine(at);
          if (body[at] !== COMMA) return -1;
          at += 1;
          continue;
        }
        const from = at;
        if (byte === MINUS) byte = body[++at] as number;
        const digits = at;
        const isBelowOne = byte === ZERO;
        while (byte >= ZERO && byte <= NINE) byte = body[++at] as number;
        // Anything else is not how a number is printed: leading zeros, a minus alone or before zero.
        let type = at > digits && (!isBelowOne || (at === digits + 1 && from === digits)) ? WHOLE : STRING;
        if (byte === DOT) {
          const dot = at;
          for (byte = body[++at] as number; byte >= ZERO && byte <= NINE; ) byte = body[++at] as number;
          type = type === WHOLE && at > dot + 1 ? DECIMAL : STRING;
        }
        let to = at;
        for (; byte !== COMMA && byte > CARRIAGE_RETURN; byte = body[++at] as number) {
          if (byte === SPACE) continue;
          if (byte < SPACE || byte === QUOTE || byte >= FIRST_BEYOND_ASCII) return -1;
          type = byte === BACKSLASH || type === ESCAPED ? ESCAPED : STRING;
          to = at + 1;
        }
        const key = keyAt[cell] as number;
        if (key >= 0) {
          types[key] = to === from || (blankHyphens && to === from + 1 && body[from] === MINUS) ? NULL : type;
          froms[key] = from;
          tos[key] = to;
        }
        cell += 1;
        if (cell === cells) return endLine(at);
        if (byte !== COMMA) return -1;
        at += 1;
      }
    },
    parse: (_type, from, to) => body.toString('latin1', from, to),
  };
}
