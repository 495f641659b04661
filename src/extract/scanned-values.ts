// The types of a value in the bytes of a record.

export const NULL = 0;
/** A string in ASCII without escapes: its bytes are its characters. */
export const STRING = 1;
/** Any other string. */
export const ESCAPED = 2;
/** An integer, and a number with decimals; their bytes are their digits. */
export const WHOLE = 3;
export const DECIMAL = 4;
export const TRUE = 5;
export const FALSE = 6;

export const TYPES = [NULL, STRING, ESCAPED, WHOLE, DECIMAL, TRUE, FALSE];

/** Finds the values of records in the bytes of a body. */
export interface ValueScanner {
  /** Of the record found last, by position of the key: the type of each value, and where in the body it is. */
  readonly types: Uint8Array;
  readonly froms: Int32Array;
  readonly tos: Int32Array;
  /** Finds the values of the record that begins here. @returns the offset after it, or -1 if they cannot be found. */
  find(start: number): number;
  /** The value that a parser makes of these bytes. @throws if the parser would. */
  parse(type: number, from: number, to: number): unknown;
}
