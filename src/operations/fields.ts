import type { Compute, DerivedField, Requested, RequestField, ResponseField } from './declaration-schema.ts';
import type { Kind } from './declaration-values.ts';

export type {
  Compute,
  DerivedField,
  Field,
  Requested,
  RequestField,
  ResponseField,
} from './declaration-schema.ts';
export { type Kind, SQL_TYPES } from './declaration-values.ts';

/**
 * The functions with which operation files declare their fields, one line for each: the source's name, our column, its
 * meaning and unit. The zod schema, the drizzle column, the COPY encoder, the column comment, the data dictionary and
 * the sandbox's response are all made from that line.
 */

/** What an XML name has instead of a character that it cannot have, e.g. `Stock_x0020_Price`. */
const XML_ESCAPE = /_x([0-9a-f]{4})_/g;

/** A name as it is compared: `StockPrice`, `Stock Price`, `stock_price` and `STOCK-PRICE` are the same. */
export function plainName(name: string): string {
  return name
    .toLowerCase()
    .replace(XML_ESCAPE, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/[\s_-]+/g, '');
}

/** True for one of the days requested. A trial address serves its own, whatever was requested. */
export function isRequestedDay({ from, to, params }: Requested, day: string): boolean {
  return params.trialDay !== undefined || (from <= day && day <= to);
}

type FieldOptions = Omit<ResponseField, 'from' | 'source' | 'column' | 'kind' | 'meaning'>;

type ResponseFieldMaker = (
  source: string,
  column: string,
  meaning: string,
  options?: FieldOptions,
) => ResponseField;

function responseField(kind: Kind): ResponseFieldMaker {
  return (source, column, meaning, options = {}) => ({
    from: 'response',
    source,
    column,
    kind,
    meaning,
    ...options,
  });
}

/** Text, trimmed; empty means null. */
export const text = responseField('text');
/** Integer of at most 32 bits: codes, years. */
export const int4 = responseField('int4');
/** Integer of at most 64 bits: quantities and counts. A fraction is a reject. */
export const int8 = responseField('int8');
/** Decimal number, stored with every digit that the source sent: money, prices, ratios. */
export const numeric = responseField('numeric');
export const boolean = responseField('boolean');
/** Calendar day without a zone. */
export const date = responseField('date');
/** Date-time in the source's zone (Asia/Kolkata), stored as an instant. */
export const datetime = responseField('datetime');

/** A column filled from the request. */
export function fromRequest(
  column: string,
  kind: Kind,
  meaning: string,
  value: RequestField['value'],
): RequestField {
  return { from: 'request', column, kind, meaning, value, required: true };
}

/** A column computed from the record. */
export function derived(column: string, kind: Kind, meaning: string, value: Compute): DerivedField {
  return { from: 'derived', column, kind, meaning, value };
}

/**
 * Counts equal records of a response, 1, 2, …, for the key of a set without a natural one: equal lines are rows of
 * their own, and the same response in another order has the same rows. `sources` must be all fields that distinguish
 * two records, the values too; the table's key must have the columns of all of them, and this one.
 */
export function occurrence(column: string, sources: readonly string[]): DerivedField {
  const meaning = 'Which of the equal records of the response it is, from 1.';
  return derived(column, 'int4', meaning, (_get, read, memory) => {
    // Other columns of the table count in the same memory.
    const record = JSON.stringify([column, ...sources.map((source) => read(source, 'text'))]);
    const position = (memory.get(record) ?? 0) + 1;
    memory.set(record, position);
    return position;
  });
}

const DAY_FIRST = /^\s*(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?=$|[\sT])/;

/** A day of which the day comes before the month, `27/02/2025`, as `2025-02-27`; anything else as it is (pure). */
export function dayFirstAsIso(sent: unknown): string | number | null {
  if (typeof sent === 'number') return sent;
  if (typeof sent !== 'string') return null;
  return sent.replace(DAY_FIRST, (_all, day: string, month: string, year: string) =>
    [year, month.padStart(2, '0'), day.padStart(2, '0')].join('-'),
  );
}

const WITH_COMMAS = /^\s*[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?\s*$/;

/** A number with commas between its digits, `1,23,234.50`, without them; anything else as it is (pure). */
export function numberWithoutCommas(sent: unknown): string | number | null {
  if (typeof sent === 'number') return sent;
  if (typeof sent !== 'string') return null;
  return WITH_COMMAS.test(sent) ? sent.replaceAll(',', '') : sent;
}

/** For `compute` of a `date` or `datetime` that is sent with the day first: `27/02/2025`, `27-02-2025 21:15:00`. */
export const dayFirst =
  (source: string): Compute =>
  (get) =>
    dayFirstAsIso(get(source));

/** For `compute` of a number that is sent with commas: `1,234.50`, and `1,23,234.50` in lakhs. */
export const withoutCommas =
  (source: string): Compute =>
  (get) =>
    numberWithoutCommas(get(source));

/** The ticker symbol in a security id that may carry a series suffix after a dot: `ABHAPOWER.ST` → `ABHAPOWER`. */
export function symbolOf(idField: string, seriesField?: string): DerivedField {
  return derived('symbol', 'text', 'Ticker symbol: scrip_id less its series suffix.', (_get, read) => {
    const id = read(idField, 'text');
    if (typeof id !== 'string') return null;
    const dot = id.lastIndexOf('.');
    if (dot <= 0) return id;
    const suffix = id.slice(dot + 1).toUpperCase();
    const series = seriesField === undefined ? null : read(seriesField, 'text');
    const isSeries = typeof series === 'string' && suffix === series.toUpperCase();
    return isSeries || /^[A-Z0-9]{1,2}$/.test(suffix) ? id.slice(0, dot) : id;
  });
}
