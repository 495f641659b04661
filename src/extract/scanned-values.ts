/** What a value in the bytes of a record is. */
export const NULL = 0;
/** A string without escapes, in ASCII: its bytes are its letters. */
export const STRING = 1;
/** Any other string. */
export const ESCAPED = 2;
/** A whole number, and one with decimals, the bytes of which are their digits. */
export const WHOLE = 3;
export const DECIMAL = 4;
export const TRUE = 5;
export const FALSE = 6;

export const TYPES = [NULL, STRING, ESCAPED, WHOLE, DECIMAL, TRUE, FALSE];

/** Finds the values of records in the bytes of a body. */
export interface ValueScanner {
  /** Of the record found last, by the places of its keys: what each value is, and where in the body. */
  readonly types: Uint8Array;
  readonly froms: Int32Array;
  readonly tos: Int32Array;
  /** Finds the values of the record that begins here. @returns the place behind it, or -1. */
  find(start: number): number;
  /** The value that a parser makes of such bytes. @throws where it would. */
  parse(type: number, from: number, to: number): unknown;
}
