import type { Compute, DerivedField, Requested, RequestField, ResponseField } from './declaration.ts';
import type { Kind } from './declaration-values.ts';

export type {
  Compute,
  DerivedField,
  Field,
  Requested,
  RequestField,
  ResponseField,
} from './declaration.ts';
export { type Kind, SQL_TYPES } from './declaration-values.ts';

/**
 * The functions with which operation files declare their fields, one line for each: the source's name, our column, its
 * meaning and unit. The reader of its values, the drizzle column, the COPY encoder, the column comment, the data dictionary and
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

/** True for one of the days requested. */
export const isRequestedDay = ({ from, to }: Requested, day: string): boolean => from <= day && day <= to;

type FieldOptions = Omit<ResponseField, 'from' | 'source' | 'column' | 'kind' | 'meaning'>;

/** What a line says is the type of its field, from which that of the rows follows. */
interface ResponseFieldMaker<ColumnKind extends Kind> {
  <const Source extends string, const Column extends string>(
    source: Source,
    column: Column,
    meaning: string,
  ): ResponseField<Column, ColumnKind, Source>;
  <const Source extends string, const Column extends string, const Options extends FieldOptions>(
    source: Source,
    column: Column,
    meaning: string,
    options: Options,
  ): ResponseField<Column, ColumnKind, Source> & Options;
}

function responseField<ColumnKind extends Kind>(kind: ColumnKind): ResponseFieldMaker<ColumnKind> {
  return <Source extends string, Column extends string, Options>(
    source: Source,
    column: Column,
    meaning: string,
    options?: Options,
  ) => ({ from: 'response' as const, source, column, kind, meaning, ...options });
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
export function fromRequest<const Column extends string, const ColumnKind extends Kind>(
  column: Column,
  kind: ColumnKind,
  meaning: string,
  value: RequestField['value'],
): RequestField<Column, ColumnKind> {
  return { from: 'request', column, kind, meaning, value, required: true };
}

/** A column computed from the record. */
export function derived<const Column extends string, const ColumnKind extends Kind>(
  column: Column,
  kind: ColumnKind,
  meaning: string,
  value: Compute,
): DerivedField<Column, ColumnKind> {
  return { from: 'derived', column, kind, meaning, value };
}

/**
 * Counts equal records of a response, 1, 2, …, for the key of a set without a natural one: equal lines are rows of
 * their own, and the same response in another order has the same rows. `sources` must be all fields that distinguish
 * two records, the values too; the table's key must have the columns of all of them, and this one.
 */
export function occurrence<const Column extends string>(
  column: Column,
  sources: readonly string[],
): DerivedField<Column, 'int4'> {
  const meaning = 'Which of the equal records of the response it is, from 1.';
  return derived(column, 'int4', meaning, (_get, read, memory) => {
    // Other columns of the table count in the same memory.
    const record = JSON.stringify([column, ...sources.map((source) => read(source, 'text'))]);
    const position = (memory.get(record) ?? 0) + 1;
    memory.set(record, position);
    return position;
  });
}

/** The ticker symbol in a security id that may carry a series suffix after a dot: `ABHAPOWER.ST` → `ABHAPOWER`. */
export function symbolOf(idField: string, seriesField?: string): DerivedField<'symbol', 'text'> {
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
