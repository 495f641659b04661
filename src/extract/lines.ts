const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Finds the first line of a body that is longer than `most` bytes, so that it is refused before a parser makes a string
 * or a list of cells of it: from the start of a line it jumps to the last line end within `most` bytes, so few of the
 * lines are looked at. A carriage return alone ends a line as well. In UTF-16, where each line end has one such byte,
 * lengths are right to a byte.
 *
 * @returns its number, from 1 on, and its bytes without the line end; null if there is none.
 */
export function findLongLine(
  body: Buffer,
  most: number,
): { readonly line: number; readonly bytes: number } | null {
  for (let start = 0; body.length - start > most; ) {
    const within = body.subarray(start, start + most + 1);
    const end = Math.max(within.lastIndexOf(LINE_FEED), within.lastIndexOf(CARRIAGE_RETURN));
    if (end === -1) {
      const rest = body.subarray(start);
      const line = countLineEnds(body.subarray(0, start)) + 1;
      return { line, bytes: Math.min(findEnd(rest, LINE_FEED), findEnd(rest, CARRIAGE_RETURN)) };
    }
    start += end + 1;
  }
  return null;
}

const findEnd = (bytes: Buffer, byte: number): number => {
  const at = bytes.indexOf(byte);
  return at === -1 ? bytes.length : at;
};

/** How many line feeds a body has, and carriage returns without one behind. */
export function countLineEnds(body: Buffer): number {
  let ends = 0;
  for (let at = body.indexOf(LINE_FEED); at !== -1; at = body.indexOf(LINE_FEED, at + 1)) ends += 1;
  for (let at = body.indexOf(CARRIAGE_RETURN); at !== -1; at = body.indexOf(CARRIAGE_RETURN, at + 1))
    if (body[at + 1] !== LINE_FEED) ends += 1;
  return ends;
}
