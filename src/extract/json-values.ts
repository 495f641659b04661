import { DECIMAL, ESCAPED, FALSE, NULL, STRING, TRUE, type ValueScanner, WHOLE } from './scanned-values.ts';

// Declared in each scanner, because V8 looks up an imported constant at every use: a sixth of the time of scanning.
const SPACE = 32;
const QUOTE = 34;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const BACKSLASH = 92;
const FIRST_BEYOND_ASCII = 128;
const SMALL_E = 101;

/** How many bytes are compared at once. */
const WORD = 4;
const [NULL_WORD, TRUE_WORD, FALSE_WORD] = ['null', 'true', 'fals'].map((letters) =>
  Buffer.from(letters).readInt32LE(),
);
const FALSE_LENGTH = 5;

/** Numbers of up to this many characters can be stored in a double and printed again without a change. */
const SAFE_DIGITS = 15;

/** Below a millionth, numbers are printed with an exponent. */
const SAFE_DECIMALS_OF_ZERO = 6;

/**
 * Finds the values of JSON records that have exactly these keys in this order, with the same white space as an example.
 * Numbers are found as `String` writes them, without zeros at the end.
 *
 * @param body in UTF-8.
 * @param isRead by position of a key: 1 if a column's reader always sees its value. Other strings have to be plain
 *   ASCII without escapes, because nothing else checks them.
 * @returns null if the example does not have these keys.
 */
export function createJsonScanner(
  body: Buffer,
  keys: readonly string[],
  example: string,
  isRead: Uint8Array,
): ValueScanner | null {
  const separators = separatorsOf(keys, example);
  if (separators === null) return null;
  const words: number[] = [];
  const masks: number[] = [];
  const wordEnds = separators.map((separator) => {
    for (let at = 0; at < separator.length; at += WORD) {
      words.push(Buffer.concat([separator.subarray(at, at + WORD), Buffer.alloc(WORD)]).readInt32LE());
      masks.push(at + WORD <= separator.length ? -1 : 2 ** (8 * (separator.length - at)) - 1);
    }
    return words.length;
  });
  const values: Values = {
    types: new Uint8Array(keys.length),
    froms: new Int32Array(keys.length),
    tos: new Int32Array(keys.length),
    lengths: Int32Array.from(separators, (separator) => separator.length),
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

/** In characters; the separators of a longer record are not computed. */
const LONGEST_EXAMPLE = 64 * 1024;

/**
 * The bytes before, between and after the values of a record; null if it does not have exactly these keys in this
 * order.
 */
function separatorsOf(keys: readonly string[], example: string): Buffer[] | null {
  if (example.length > LONGEST_EXAMPLE) return null;
  const separator = /\s*[{,]\s*"([\w -]{1,100})"\s*:\s*/y;
  const value = /"(?:[^"\\]|\\.)*"|[^\s,{}[\]"]+/y;
  const end = /\s*\}$/y;
  const separators: string[] = [];
  let at = 0;
  for (const key of keys) {
    separator.lastIndex = at;
    const found = separator.exec(example);
    if (found === null || found[1] !== key) return null;
    separators.push(found[0]);
    value.lastIndex = separator.lastIndex;
    if (!value.test(example)) return null;
    at = value.lastIndex;
  }
  end.lastIndex = at;
  const last = end.exec(example);
  return last === null ? null : [...separators, last[0]].map((one) => Buffer.from(one, 'latin1'));
}

interface Body {
  readonly bytes: Buffer;
  readonly view: DataView;
}

interface Values extends Pick<ValueScanner, 'types' | 'froms' | 'tos'> {
  /** How many bytes the separator before each value has, and the one after the last. */
  readonly lengths: Int32Array;
  /** The bytes of all separators, four in a word; the bits of each word that are compared; where those of each end. */
  readonly words: Int32Array;
  readonly masks: Int32Array;
  readonly wordEnds: Int32Array;
  readonly isRead: Uint8Array;
}

/** Finds the values of a record. @returns the offset after it, or -1 if they cannot be found. */
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
    // The last word may reach beyond the separator, but not beyond the body.
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
        // JSON.parse checks the string when the column is read. Here only its end is looked for.
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
