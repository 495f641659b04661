import { randomUUID } from 'node:crypto';
import { messageOf } from '../core/errors.ts';
import { decodeText } from './body.ts';
import { unreadable } from './diagnostics.ts';
import { markUnsafeNumbers, mayHaveTooMany } from './unsafe-numbers.ts';

/** Parses JSON, with numbers that would be rounded as marked strings. @throws PipelineError `unreadable` */
export function parseJson(text: string, utf8: Buffer = Buffer.from(text)): unknown {
  const marked = markUnsafeNumbers(utf8, text);
  try {
    return JSON.parse(marked === null ? text : decodeText(marked));
  } catch {
    throw unreadable(`broken JSON, ${text.length} characters: ${whereBroken(text)}`, { cutShort: true });
  }
}

/** Where a text stops being JSON. The rest of the parser's message is left out, because it quotes the text. */
function whereBroken(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    const position = /position (\d+)/.exec(messageOf(error))?.[1];
    if (position !== undefined) {
      const lines = text.slice(0, Number(position)).split('\n');
      return `the error is at line ${lines.length}, character ${(lines.at(-1) ?? '').length + 1}`;
    }
  }
  return 'it ends too early';
}

/**
 * A slice of a list has at least so many bytes. V8 keeps strings of more than 128 KB apart from those that are collected
 * often.
 */
const SLICE = 64 * 1024;

/** How many ends of objects are tried as the end of a slice: nearly always the first one is the end of a record. */
const MOST_TRIED = 20;

/** How many bytes may stand before and behind the list. */
const LONGEST_ENVELOPE = 2_000;

/** What stands between two records, from the end of the first one on. */
const BETWEEN = /^\}[ \t\r\n]*,[ \t\r\n]*(?=\{)/;
const LONGEST_BETWEEN = 100;

/** A list that was parsed in slices. */
interface ParsedList {
  readonly records: number;
  /** The document in which the list has one element instead of its records: `mark`. */
  readonly envelope: unknown;
  readonly mark: string;
}

/**
 * Parses a JSON document that is a list of objects, or an object with such a list, in slices of the list. Where a slice
 * ends is guessed and then proved: of a slice that begins with a record, what is between the brackets is a list only if
 * it also ends with a record.
 *
 * @param name of the member that has the list, in lower case.
 * @param take is called with each record and its position.
 * @param sliceBytes the least size of a slice.
 * @returns null if there is no such list, or the document is no JSON; some records may have been taken.
 */
export function parseListInSlices(
  body: Buffer,
  name: string,
  take: (position: number, record: unknown) => void,
  sliceBytes = SLICE,
): ParsedList | null {
  if (mayHaveTooMany(body)) return null;
  const head = listStart(name).exec(body.toString('latin1', 0, LONGEST_ENVELOPE))?.[0];
  if (head === undefined) return null;
  let records = 0;
  const takeAll = (slice: readonly unknown[]) => {
    for (const record of slice) take(records++, record);
  };
  let from = head.length;
  for (let tried = 0, end = 0; ; ) {
    end = body.indexOf('}', Math.max(end + 1, from + sliceBytes * (tried + 1)));
    if (end === -1) break;
    const between = BETWEEN.exec(body.toString('latin1', end, end + LONGEST_BETWEEN))?.[0];
    const slice = between === undefined ? null : parseSlice(body, from, end + 1);
    if (between === undefined || slice === null) {
      tried += 1;
      if (tried === MOST_TRIED) return null;
      continue;
    }
    takeAll(slice);
    from = end + between.length;
    tried = 0;
  }
  const mark = randomUUID();
  for (let end = body.lastIndexOf(']'); end > from && body.length - end < LONGEST_ENVELOPE; ) {
    const slice = parseSlice(body, from, end);
    const envelope = slice === null ? undefined : parseEnvelope(body, head.length, end, mark);
    if (slice !== null && envelope !== undefined) {
      takeAll(slice);
      return { records, envelope, mark };
    }
    end = body.lastIndexOf(']', end - 1);
  }
  return null;
}

/** Matches up to the first record of a list, alone or in an object with only plain values before it. */
const listStart = (name: string) =>
  new RegExp(
    String.raw`^(?:\xef\xbb\xbf)?\s*(?:\{\s*(?:"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[^\s"{}[\],:]+)\s*,\s*)*"${name}"\s*:\s*)?\[\s*(?=\{)`,
    'i',
  );

/** The records between two offsets; null if they are not whole. */
function parseSlice(body: Buffer, start: number, end: number): unknown[] | null {
  return tryParse(body.subarray(start, end), (text) => `[${text}]`) as unknown[] | null;
}

function tryParse(utf8: Buffer, complete = (text: string): string => text): unknown {
  const text = decodeText(utf8);
  const marked = markUnsafeNumbers(utf8, text);
  try {
    return JSON.parse(complete(marked === null ? text : decodeText(marked)));
  } catch {
    return null;
  }
}

/** The document with a mark instead of what is between two offsets; undefined if it is no JSON. */
function parseEnvelope(body: Buffer, start: number, end: number, mark: string): unknown {
  const text = `${decodeText(body.subarray(0, start))}"${mark}"${decodeText(body.subarray(end))}`;
  return tryParse(Buffer.from(text)) ?? undefined;
}
