import { isUtf8 } from 'node:buffer';
import type { AskedFor } from '../operations/fields.ts';
import { asksInstruments } from '../operations/operation.ts';
import type { RowsWriter } from '../operations/rows.ts';
import type { TableDefinition } from '../operations/table.ts';
import { MAX_ROW_BYTES } from './csv.ts';
import { MAX_CONTAINERS } from './decimals.ts';
import { type EnvelopeContext, findRecords, openEnvelope, parseJson } from './envelope.ts';
import { createJsonScanner } from './json-values.ts';
import type { Layout } from './layout.ts';
import type { FieldObserver } from './observed-fields.ts';
import { createRecordScanner, type RecordScanner } from './record-scanner.ts';
import type { RecordReader } from './records.ts';

/** What the records of an answer are read with. */
export interface Reading extends EnvelopeContext {
  readonly asked: AskedFor;
  readonly timeZone: string;
  readonly reader: RecordReader;
  /** What observes the fields of the records that are not handed over. */
  readonly observer: FieldObserver;
  /** Where rows of a table are written. */
  readonly linesOf: (table: TableDefinition) => RowsWriter;
  /** Takes a record that had to be parsed. */
  readonly take: (position: number, record: unknown) => void;
}

/** More layouts than this in one answer: too few records share one for scanners to pay off. */
const MOST_LAYOUTS = 20;

/** If more records than this had to be parsed alone, and more than half of all, parsing the whole answer is faster. */
export const MANY_PARSED = 100;

/** What is told of the envelope of an answer. */
interface ScannedAnswer {
  readonly warnings: readonly string[];
  readonly miscount?: string;
}

/**
 * Reads the records of a JSON answer one by one from its bytes: most with a scanner made from the first record of their
 * layout; the others are parsed one at a time and handed to `take`.
 *
 * @returns warnings about their envelope; null if the answer has to be parsed as a whole, and then everything that was
 *   written or handed over has to be discarded.
 * @throws PipelineError as `openAnswer` does.
 */
export function scanAnswer(body: Buffer, reading: Reading): ScannedAnswer | null {
  const { operation, asked, timeZone, reader, observer, linesOf, take } = reading;
  if (asksInstruments(operation) || asked.instruments.length > 0) return null;
  const start = findRecords(body, operation);
  if (start === null || !isUtf8(body)) return null;
  const scanners = new Map<Layout, RecordScanner>();
  let scan: RecordScanner | undefined;
  let lines: RowsWriter | undefined;
  let records = 0;
  let parsed = 0;
  let containers = 2;
  for (let at = start; ; ) {
    let next = scan === undefined || lines === undefined ? -1 : scan(at, lines);
    containers += 1;
    if (next < 0) {
      const end = findEnd(body, at);
      // A long record may hold so much that there is no room for it, which is found out before all is parsed.
      if (end === null || end.at - at > MAX_ROW_BYTES) return null;
      const text = body.toString('utf8', at, end.at);
      try {
        take(records, parseJson(text, body.subarray(at, end.at)));
      } catch {
        return null;
      }
      const layout = reader.lastLayout();
      if (layout === null) return null;
      scan = scanners.get(layout);
      if (scan === undefined) {
        scan =
          createRecordScanner(body, layout, {
            asked,
            timeZone,
            observed: { by: observer, isText: false },
            valuesOf: (isRead) => createJsonScanner(body, layout.keys, text, isRead),
          }) ?? undefined;
        if (scan === undefined || scanners.size === MOST_LAYOUTS) return null;
        scanners.set(layout, scan);
      }
      lines = layout.shape === null ? undefined : linesOf(layout.shape.table);
      containers += end.containers;
      next = end.at;
      parsed += 1;
      if (parsed > MANY_PARSED && 2 * parsed > records) return null;
    }
    records += 1;
    if (containers > MAX_CONTAINERS) return null;
    next = skipSpace(body, next);
    if (body[next] !== COMMA) {
      if (body[next] !== CLOSING_BRACKET) return null;
      return openEnvelope(body, { start, end: next, records }, reading);
    }
    at = skipSpace(body, next + 1);
  }
}

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const OPENING_BRACKET = 91;
const CLOSING_BRACKET = 93;
const OPENING_BRACE = 123;
const CLOSING_BRACE = 125;

function skipSpace(body: Buffer, start: number): number {
  let at = start;
  for (let byte = body[at]; ; byte = body[++at]) {
    if (byte !== SPACE && byte !== LINE_FEED && byte !== CARRIAGE_RETURN && byte !== TAB) return at;
  }
}

/** Where the object that begins here ends, and how many arrays and objects it holds; null if there is no complete one. */
function findEnd(body: Buffer, start: number): { readonly at: number; readonly containers: number } | null {
  if (body[start] !== OPENING_BRACE) return null;
  let depth = 0;
  let containers = 0;
  for (let at = start; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) {
      for (at++; at < body.length && body[at] !== QUOTE; at++) if (body[at] === BACKSLASH) at++;
    } else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      depth += 1;
      containers += 1;
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      depth -= 1;
      if (depth === 0) return { at: at + 1, containers };
    }
  }
  return null;
}
