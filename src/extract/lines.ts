const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** How the lines of a body are, found without making a string of any of them. */
interface Lines {
  /** How many line feeds it has, and carriage returns without one behind. */
  readonly ends: number;
  /** Bytes of the longest line, without its end, and its number from 1 on. */
  readonly longest: number;
  readonly longestAt: number;
}

/**
 * Measures the lines of a body, so that those that are too long or too many are refused before a parser makes strings of
 * them. In UTF-16, where each end of a line has one such byte, lengths are right to a byte.
 */
export function measureLines(body: Buffer): Lines {
  let ends = 0;
  let longest = 0;
  let longestAt = 1;
  let start = 0;
  for (let at = 0; at <= body.length; at += 1) {
    const byte = body[at];
    if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN && at < body.length) continue;
    if (at - start > longest) {
      longest = at - start;
      longestAt = ends + 1;
    }
    start = at + 1;
    if (byte === LINE_FEED || (byte === CARRIAGE_RETURN && body[at + 1] !== LINE_FEED)) ends += 1;
  }
  return { ends, longest, longestAt };
}
