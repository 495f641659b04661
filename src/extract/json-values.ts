import { DECIMAL, ESCAPED, FALSE, NULL, STRING, TRUE, type ValueScanner, WHOLE } from './scanned-values.ts';

// Each scanner has its own: V8 reads an imported constant anew at each use, which costs a sixth of the time of scanning.
const SPACE = 32;
const QUOTE = 34;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const BACKSLASH = 92;
const FIRST_BEYOND_ASCII = 128;
const SMALL_E = 101;

/** Bytes that are compared at once. */
const WORD = 4;
const [NULL_WORD, TRUE_WORD, FALSE_WORD] = ['null', 'true', 'fals'].map((letters) =>
  Buffer.from(letters).readInt32LE(),
);
const FALSE_LENGTH = 5;

/** Numbers of up to so many characters survive a double. */
const SAFE_DIGITS = 15;

/** Below a millionth, numbers are printed with an exponent. */
const SAFE_DECIMALS_OF_ZERO = 6;

/**
 * Finds the values of JSON records that have these keys in this order, each once, written as in an example of them.
 * Numbers are found as `String` writes them, zeros at the end left out.
 *
 * @param body in UTF-8.
 * @param isRead by place of a key: does a column's reader see in any case what stands there? Else it has to be plain.
 * @returns null where the example does not have these keys.
 */
export function createJsonScanner(
  body: Buffer,
  keys: readonly string[],
  example: string,
  isRead: Uint8Array,
): ValueScanner | null {
  const gaps = gapsOf(keys, example);
  if (gaps === null) return null;
  const words: number[] = [];
  const masks: number[] = [];
  const wordEnds = gaps.map((gap) => {
    for (let at = 0; at < gap.length; at += WORD) {
      words.push(Buffer.concat([gap.subarray(at, at + WORD), Buffer.alloc(WORD)]).readInt32LE());
      masks.push(at + WORD <= gap.length ? -1 : 2 ** (8 * (gap.length - at)) - 1);
    }
    return words.length;
  });
  const values: Values = {
    types: new Uint8Array(keys.length),
    froms: new Int32Array(keys.length),
    tos: new Int32Array(keys.length),
    lengths: Int32Array.from(gaps, (gap) => gap.length),
    words: Int32Array.from(words),
    masks: Int32Array.from(masks),
    wordEnds: Int32Array.from(wordEnds),
    isRead,
  };
  const viewed = { bytes: body, view: new DataView(body.buffer, body.byteOffset, body.length) };
  return {
    types: values.types,
    froms: values.froms,
    tos: values.tos,
    find: (start) => findValues(values, viewed, start),
    parse(type, from, to) {
      if (type === STRING) return body.toString('latin1', from, to);
      if (type === ESCAPED) return JSON.parse(`"${body.toString('utf8', from, to)}"`);
      return type === WHOLE || type === DECIMAL ? Number(body.toString('latin1', from, to)) : type === TRUE;
    },
  };
}

const LONGEST_EXAMPLE = 64 * 1024;

/**
 * What stands before, between and behind the values of a record; null where it does not have these keys in this
 * order, each once.
 */
function gapsOf(keys: readonly string[], example: string): Buffer[] | null {
  if (example.length > LONGEST_EXAMPLE) return null;
  const gap = /\s*[{,]\s*"(\w{1,100})"\s*:\s*/y;
  const value = /"(?:[^"\\]|\\.)*"|[^\s,{}[\]"]+/y;
  const end = /\s*\}$/y;
  const gaps: string[] = [];
  let at = 0;
  for (const key of keys) {
    gap.lastIndex = at;
    const found = gap.exec(example);
    if (found === null || found[1] !== key) return null;
    gaps.push(found[0]);
    value.lastIndex = gap.lastIndex;
    if (!value.test(example)) return null;
    at = value.lastIndex;
  }
  end.lastIndex = at;
  const last = end.exec(example);
  return last === null ? null : [...gaps, last[0]].map((one) => Buffer.from(one, 'latin1'));
}

interface Body {
  readonly bytes: Buffer;
  readonly view: DataView;
}

interface Values extends Pick<ValueScanner, 'types' | 'froms' | 'tos'> {
  /** How many bytes stand before each value and behind the last, … */
  readonly lengths: Int32Array;
  /** … which they are, four in a word, of the last of which only some count, and where the words of each end. */
  readonly words: Int32Array;
  readonly masks: Int32Array;
  readonly wordEnds: Int32Array;
  readonly isRead: Uint8Array;
}

/** Finds the values of a record. @returns the place behind it, or -1. */
function findValues(
  { lengths, words, masks, wordEnds, isRead, types, froms, tos }: Values,
  { bytes: body, view }: Body,
  start: number,
): number {
  const keys = types.length;
  let at = start;
  let word = 0;
  for (let key = 0; ; key++) {
    const after = at + (lengths[key] as number);
    // The last word may reach beyond what stands there, but not beyond the body.
    if (after + WORD > body.length) return -1;
    for (const end = wordEnds[key] as number; word < end; word++, at += WORD) {
      if ((view.getInt32(at, true) & (masks[word] as number)) !== words[word]) return -1;
    }
    at = after;
    if (key === keys) return at;
    let byte = body[at] as number;
    if (byte === QUOTE) {
      let type = STRING;
      const from = at + 1;
      for (byte = body[++at] as number; byte !== QUOTE; byte = body[++at] as number) {
        if (byte >= SPACE && byte < FIRST_BEYOND_ASCII && byte !== BACKSLASH) continue;
        // What stands here is left to JSON.parse, but for the end of the body.
        if (byte === undefined || isRead[key] === 0) return -1;
        type = ESCAPED;
        if (byte === BACKSLASH) at++;
      }
      types[key] = type;
      froms[key] = from;
      tos[key] = at++;
    } else if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
      const from = at;
      if (byte === MINUS) byte = body[++at] as number;
      const digits = at;
      const isBelowOne = byte === ZERO;
      if (isBelowOne) byte = body[++at] as number;
      else while (byte >= ZERO && byte <= NINE) byte = body[++at] as number;
      if (at === digits) return -1;
      const wholeEnd = at;
      let to = at;
      if (byte === DOT) {
        for (byte = body[++at] as number; byte >= ZERO && byte <= NINE; byte = body[++at] as number) {
          if (byte !== ZERO) to = at + 1;
        }
        if (at === wholeEnd + 1) return -1;
        if (isBelowOne && to > wholeEnd + 1 + SAFE_DECIMALS_OF_ZERO) return -1;
      }
      if (at - from > SAFE_DIGITS) return -1;
      // No column can tell -0 from 0.
      if (isBelowOne && digits > from && to === wholeEnd) return -1;
      types[key] = to === wholeEnd ? WHOLE : DECIMAL;
      froms[key] = from;
      tos[key] = to;
    } else {
      if (at + FALSE_LENGTH > body.length) return -1;
      const letters = view.getInt32(at, true);
      types[key] = letters === NULL_WORD ? NULL : letters === TRUE_WORD ? TRUE : FALSE;
      at += WORD;
      if (types[key] === FALSE && (letters !== FALSE_WORD || body[at++] !== SMALL_E)) return -1;
      froms[key] = tos[key] = at;
    }
  }
}
