import { readMarkedNumber } from '../declaration/decimals.ts';
import { decodeText, isUtf16 } from './body.ts';
import { endsItsLastLine, looksLikeCsv, readCsv, readCsvInSlices } from './csv.ts';
import { diagnose, incomplete, unknownDiagnostic, unreadable } from './diagnostics.ts';
import { checkHeapRoom } from './heap-room.ts';
import { parseJson, parseListInSlices } from './json.ts';
import { fitsAnyShape } from './layout.ts';
import { printable } from './sanitize.ts';
import type { CountRule, EnvelopeContext } from './types.ts';
import { readXml, type XmlValue } from './xml.ts';

/** What a response says besides its records. */
export interface Envelope {
  readonly warnings: readonly string[];
  /** What is said of more records than there are, if that is accepted. */
  readonly miscount?: string;
  /** For CSV: true if the last line has a line end. */
  readonly lastLine?: 'ended' | 'open';
  /** True if it says that there is no data. Then it does not list what there is. */
  readonly listsNothing?: boolean;
}

/** The records of a response, as sent. */
interface Records extends Envelope {
  readonly records: unknown[];
}

/** @param again whether the same response was refused before because of its count, or was stored. */
export const countRule = (setting: 'check' | 'ignore', again: boolean): CountRule =>
  again && setting === 'check' ? 'accept' : setting;

const noRecords = (): Records => ({ records: [], warnings: [] });

/** How many envelopes are opened to find the records; real responses have one, or one inside a string. */
const WRAPPINGS = 3;

/**
 * Finds the records in the text of a response by its content, not its content type:
 * JSON (an envelope, a bare list, a bare object), XML, CSV, or any of them inside a JSON string.
 *
 * @throws PipelineError of a diagnostic's kind; `unknown_diagnostic` for other text; `unreadable` for empty responses,
 *   HTML, broken JSON and CSV, and responses that say that records are missing; `too_large` if its records would take
 *   too much of this process's heap.
 */
export function openResponse(body: Buffer, context: EnvelopeContext): Records {
  checkHeapRoom(body);
  const text = decodeText(body);
  return openText(text, context, WRAPPINGS, isUtf16(body) ? undefined : body);
}

/** A smaller response is parsed at once. */
const WORTH_SLICING = 1024 * 1024;

/**
 * Reads a large response of plain CSV, or of JSON with a list of records, itself or in an envelope, in slices, so that
 * not all records are in memory at once.
 *
 * @param take is called with each record and its position.
 * @returns what `openResponse` says of its envelope; null if it has to be opened as a whole, and then the records that
 *   were taken have to be forgotten.
 * @throws PipelineError as `openResponse` does.
 */
export function openInSlices(
  body: Buffer,
  context: EnvelopeContext,
  take: (position: number, record: unknown) => void,
): Envelope | null {
  if (body.length < WORTH_SLICING) return null;
  const list = parseListInSlices(body, LIST, take);
  if (list === null) {
    const csv = readCsvInSlices(context.operation, body, take);
    return csv && { warnings: [], lastLine: csv.endsItsLastLine ? 'ended' : 'open' };
  }
  const records: unknown[] = new Array(list.records);
  const withRecords = (value: unknown) =>
    Array.isArray(value) && value.length === 1 && value[0] === list.mark ? records : value;
  const { envelope } = list;
  const completed =
    typeof envelope === 'object' && envelope !== null && !Array.isArray(envelope)
      ? Object.fromEntries(Object.entries(envelope).map(([key, value]) => [key, withRecords(value)]))
      : withRecords(envelope);
  const { records: opened, ...others } = openJson(completed, context, WRAPPINGS);
  return opened === records ? others : null;
}

/** Up to this size a response is parsed to find out what it is: every diagnostic is far smaller. */
const SMALL = 64 * 1024;

/**
 * Throws what `openResponse` would throw for a body that is not data, at little cost: of a large body only the first
 * characters are checked, so truncated JSON is only found when it is read.
 */
export function checkResponse(body: Buffer, context: EnvelopeContext): void {
  // Whether a count is right is decided when the response is read.
  if (body.length <= SMALL) openResponse(body, { ...context, count: 'ignore' });
  else rejectPage(body.toString('latin1', 0, 1_000));
}

/** Throws if the text begins like an HTML page. */
function rejectPage(start: string): void {
  if (/^\W*<(?:!doctype\s+html|html|head|title|body|div|center|h\d|p)\b/i.test(start))
    throw unreadable('it is an HTML page, not data');
}

/** @param utf8 the bytes of the text, if they are available, because scanning them is faster. */
function openText(text: string, context: EnvelopeContext, wrappings: number, utf8?: Buffer): Records {
  const start = text.trimStart().slice(0, 1_000);
  if (start === '') throw unreadable('it is empty');
  const diagnostic = diagnose(text, context.redact);
  if (diagnostic?.kind === 'no_data') {
    return { records: [], warnings: [diagnostic.message], listsNothing: true };
  }
  if (diagnostic !== null) throw diagnostic;
  if (start.startsWith('<')) {
    rejectPage(start);
    return openJson(makeEnvelope(readXml(text), context), context, wrappings);
  }
  const json = /^[[{]/.test(start) || start.trimEnd() === 'null';
  if (!json && looksLikeCsv(context.operation, text)) {
    return { records: readCsv(text, utf8), warnings: [], lastLine: endsItsLastLine(text) ? 'ended' : 'open' };
  }
  // A text in quotes is JSON as well, unless it was the header of CSV.
  if (json || start.startsWith('"')) return openJson(parseJson(text, utf8), context, wrappings);
  throw unknownDiagnostic(text, context.redact);
}

/** The name of the list of records in its envelope, in lower case. */
const LIST = 'value';

/** How many elements may be around the list of records. */
const LISTS = 3;

/**
 * An XML response as an envelope with a list of records, as in JSON, whatever its elements are called. Elements of a
 * record have no child elements; the list is what repeats, or the only element that has children.
 */
function makeEnvelope(value: XmlValue, context: EnvelopeContext, lists = LISTS): unknown {
  if (typeof value === 'string') return value.trim() === '' ? null : value;
  if (value === null) return null;
  const entries = Object.entries(value);
  const holding = entries.filter(([, member]) => typeof member === 'object' && member !== null);
  const [list] = holding;
  if (list === undefined || holding.length > 1) return value;
  const [name, member] = list;
  const others = Object.fromEntries(entries.filter(([key]) => key !== name));
  if (isList(member) || lists === 0 || fitsAnyShape(context.operation, Object.keys(member as object))) {
    return { ...others, Value: isList(member) ? member : [member] };
  }
  return { ...others, ...(makeEnvelope(member as XmlValue, context, lists - 1) as object) };
}

const isList = (value: XmlValue | undefined): value is readonly XmlValue[] => Array.isArray(value);

function openJson(json: unknown, context: EnvelopeContext, wrappings: number): Records {
  if (json === null) return noRecords();
  if (Array.isArray(json)) return { records: json, warnings: [] };
  if (typeof json === 'string') {
    const token = readMarkedNumber(json);
    if (token !== null || wrappings === 0) throw unknownDiagnostic(token ?? json, context.redact);
    return openText(json, context, wrappings - 1);
  }
  if (typeof json !== 'object') throw unknownDiagnostic(String(json), context.redact);
  return openObject(json, context, wrappings);
}

/** The member whose name in lower case is this. */
function findMember(entries: readonly [string, unknown][], name: string): unknown {
  return entries.find(([key]) => key.toLowerCase() === name)?.[1];
}

function openObject(object: object, context: EnvelopeContext, wrappings: number): Records {
  const entries = Object.entries(object);
  const value = findMember(entries, LIST);
  // Records of financial ratios have a field `value`, so an object with one is an envelope only if that is a list.
  if (!Array.isArray(value) && fitsAnyShape(context.operation, Object.keys(object))) {
    return { records: [object], warnings: [] };
  }
  const enveloped = wrappings > 0 && value !== undefined;
  if (!enveloped || !hasRecords(value)) throwError(entries, enveloped, context);
  if (enveloped) {
    const inside = value === '' ? noRecords() : openJson(value, context, wrappings - 1);
    return withCounts(inside, entries, context);
  }
  const bare = entries.every(([key]) => COUNTS.includes(key.toLowerCase()) || /^(@|odata\.)/i.test(key));
  if (bare) return withCounts(noRecords(), entries, context);
  // The envelope of OData before version 4 is not opened, but a part of a longer list must not be read as a record.
  const verbose = findMember(entries, 'd');
  if (typeof verbose === 'object' && verbose !== null) rejectLink(Object.entries(verbose), null);
  return { records: [object], warnings: [] };
}

function hasRecords(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null && value !== '';
}

/** Keys that services use for error messages in JSON. */
const MESSAGE_KEYS = ['message', 'error', 'errormessage', 'exceptionmessage', 'detail', 'title', 'status'];

/**
 * Throws if an object contains a diagnostic line, which must not be read as an empty day. In an envelope only known
 * lines matter, because an empty list may come with `"status": "ok"`.
 */
function throwError(
  entries: readonly [string, unknown][],
  enveloped: boolean,
  { redact }: EnvelopeContext,
): void {
  const messages = entries
    .filter(([key, value]) => MESSAGE_KEYS.includes(key.toLowerCase()) && typeof value === 'string')
    .map(([, value]) => String(value));
  for (const message of messages) {
    const diagnostic = diagnose(message, redact);
    if (diagnostic !== null) throw diagnostic;
  }
  if (!enveloped && messages.length > 0) throw unknownDiagnostic(messages.join(' · '), redact);
}

/**
 * Members of an envelope that state the number of records: the source's, OData's, and a usual one of paged responses.
 */
const COUNTS = ['count', '@odata.count', 'odata.count', '__count', 'totalcount'];

/** Members that OData uses for the address of further records, by version. */
const LINKS = ['@odata.nextlink', 'odata.nextlink', '__next'];

/**
 * Compares the records with what the envelope states. If there are fewer, or a link to further records, the response is
 * incomplete. The link is not followed, because then the response would decide where the access key is sent. If there
 * are more, that is a warning, because no record is missing.
 *
 * @throws PipelineError `unreadable` if records are missing, and that is not accepted.
 */
function withCounts(
  read: Records,
  entries: readonly [string, unknown][],
  { count: rule = 'check' }: EnvelopeContext,
): Records {
  rejectLink(entries, read.records.length);
  if (rule === 'ignore') return read;
  return COUNTS.reduce((all, name) => withCount(all, name, findMember(entries, name), rule), read);
}

/** Throws if there is a link to further records. */
function rejectLink(entries: readonly [string, unknown][], recordCount: number | null): void {
  for (const [name, link] of entries) {
    if (!LINKS.includes(name.toLowerCase()) || typeof link !== 'string' || link.trim() === '') continue;
    throw incomplete(
      `${recordCount === null ? 'it' : `it holds ${recordCount} records and`} says in ${name} that there are more, which is not followed; request fewer days at once`,
    );
  }
}

function withCount(read: Records, name: string, count: unknown, rule: CountRule): Records {
  const { records, warnings } = read;
  if (count === undefined || count === null) return read;
  const isScalar = typeof count === 'number' || typeof count === 'string';
  const token = readMarkedNumber(count);
  const number = isScalar ? Number(token ?? count) : Number.NaN;
  if (number === records.length) return read;
  const stated = isScalar ? printable((token ?? String(count)).slice(0, 40)) : typeof count;
  const mismatch = `${name} says ${stated}, the response holds ${records.length} records`;
  if (number > records.length) {
    if (rule === 'check') throw incomplete(mismatch);
    return { ...read, miscount: read.miscount ?? mismatch };
  }
  return { ...read, warnings: [...warnings, mismatch] };
}
