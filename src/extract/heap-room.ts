import { getHeapStatistics } from 'node:v8';
import { tooLarge } from './diagnostics.ts';

/**
 * The share of the heap that the values of one body may take. Bodies become values one after the other, because reading
 * is synchronous, and rows of large ones are kept outside the heap: so it does not depend on how many windows are worked
 * on at once.
 */
const SHARE = 0.6;

/** The heap that a body takes while it is parsed, for each of its bytes and for each value; measured, and rounded up. */
const HEAP_PER_BYTE = 2;
const HEAP_PER_VALUE = 80;

const LINE_FEED = 10;
const COMMA = 44;
const LESS_THAN = 60;

const MB = 1024 * 1024;

/**
 * Makes sure that a body whose values all become objects fits into the heap of this process, which would end otherwise,
 * with everything that it works on.
 *
 * @param limit the most bytes that a heap may have.
 * @throws PipelineError `too_large`
 */
export function checkHeapRoom(body: Buffer, limit = getHeapStatistics().heap_size_limit): void {
  const most = SHARE * limit;
  if (body.length * (HEAP_PER_BYTE + HEAP_PER_VALUE) <= most) return;
  const needed = HEAP_PER_BYTE * body.length + HEAP_PER_VALUE * countValues(body);
  if (needed <= most) return;
  const size = (bytes: number) => `${Math.ceil(bytes / MB)} MB`;
  const heap = Math.ceil(needed / SHARE / MB);
  throw tooLarge(
    `${size(body.length)}, which take some ${size(needed)} of memory to read, and at most ${size(most)} may be taken, ${SHARE * 100} % of the heap of this process (${size(limit)}); NODE_OPTIONS=--max-old-space-size=${heap} gives it enough`,
  );
}

/** About how many values a body of CSV, JSON or XML has: what separates them is counted. */
function countValues(body: Buffer): number {
  let separators = 0;
  let tags = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === COMMA || byte === LINE_FEED) separators += 1;
    else if (byte === LESS_THAN) tags += 1;
  }
  return separators + tags / 2;
}
