import { type Day, dayAt, timeAt } from '../../core/days.ts';
import { MARKET_ZONE } from '../../core/exchanges.ts';
import type { ResponseField } from '../../declaration/fields.ts';
import type { SourceRecord, Value } from './record.ts';

/** How keys are cased in JSON: as in live responses (pascal) or as declared (camel). */
export const CASINGS = ['pascal', 'camel'] as const;
export type Casing = (typeof CASINGS)[number];

/** A field of a response: where its value is in a record, what it is called there and how its value is written. */
interface WrittenField {
  readonly source: string;
  readonly name: string;
  readonly kind: ResponseField['kind'];
}

/** Live responses write these prefixes in upper case. */
const ACRONYMS = /^(isin|eps|ebit|eod|oi|ttq)(?=[A-Z]|$)/;

/** Writes a declared name in a casing: `isin` → `ISIN`, `scripCode` → `ScripCode`. */
function cased(name: string, casing: Casing): string {
  if (casing === 'camel') return name.charAt(0).toLowerCase() + name.slice(1);
  const acronym = ACRONYMS.exec(name)?.[0];
  if (acronym !== undefined) return acronym.toUpperCase() + name.slice(acronym.length);
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** `MM-DD-YYYY`. */
const dateText = (day: Day) => `${day.slice(5, 7)}-${day.slice(8, 10)}-${day.slice(0, 4)}`;

/** `MM-DD-YYYY HH:mm:ss` in Indian time. */
const dateTimeText = (seconds: number) =>
  `${dateText(dayAt(seconds, MARKET_ZONE))} ${timeAt(seconds, MARKET_ZONE)}`;

/** What the source sends for a missing date. */
const NO_DATE = '01-01-0001';
const NO_DATE_TIME = '01-01-0001 00:00:00';

const isDate = (kind: ResponseField['kind']) => kind === 'date' || kind === 'datetime';

function dateValue(value: Value, kind: ResponseField['kind']): string {
  if (kind === 'datetime') return typeof value === 'number' ? dateTimeText(value) : NO_DATE_TIME;
  return typeof value === 'string' ? dateText(value) : NO_DATE;
}

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Writes a value as a JSON token. Numbers given as text are copied, because a double could change their digits. */
function jsonValue(value: Value, kind: ResponseField['kind']): string {
  if (isDate(kind)) return `"${dateValue(value, kind)}"`;
  if (kind === 'text') return JSON.stringify(value === null || value === undefined ? '' : String(value));
  if (typeof value === 'string') return JSON_NUMBER.test(value) ? value : JSON.stringify(value);
  return String(value ?? null);
}

/** Writes the records as a list under `Value`, or a single one without an envelope if it is `bare`. */
export function jsonBody(
  records: readonly SourceRecord[],
  fields: readonly WrittenField[],
  { casing, bare }: { readonly casing: Casing; readonly bare: boolean },
): string {
  const keys = fields.map(({ name }) => `${JSON.stringify(cased(name, casing))}:`);
  const objects = records.map((record) => {
    const members = fields.flatMap(({ source, kind }, at) => {
      const value = record[source];
      return value === undefined ? [] : [`${keys[at]}${jsonValue(value, kind)}`];
    });
    return `{${members.join(',')}}`;
  });
  if (bare && objects.length === 1) return objects.join('');
  return `{${JSON.stringify(cased('value', casing))}:[${objects.join(',')}]}`;
}

function csvCell(value: Value, kind: ResponseField['kind']): string {
  if (isDate(kind)) return `"${dateValue(value, kind)}"`;
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes header and rows. A field that no record has gets no column. */
export function csvBody(records: readonly SourceRecord[], fields: readonly WrittenField[]): string {
  const present = fields.filter(
    ({ source }) => records.length === 0 || records.some((record) => record[source] !== undefined),
  );
  const header = present.map(({ name }) => cased(name, 'pascal'));
  const rows = records.map((record) =>
    present.map(({ source, kind }) => csvCell(record[source], kind)).join(','),
  );
  return `${[header.join(','), ...rows].join('\r\n')}\r\n`;
}

const XML_SIGNS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** A text as part of XML, which cannot contain most control characters. */
const escaped = (text: string) =>
  text.replace(/[&<>]/g, (sign) => XML_SIGNS[sign] ?? sign).replace(/[^\P{Cc}\t\n\r]/gu, '\ufffd');

/** Writes the records as elements named like the operation, in a list as .NET writes it. */
export function xmlBody(
  name: string,
  records: readonly SourceRecord[],
  fields: readonly WrittenField[],
): string {
  const elements = records.map((record) => {
    const members = fields.flatMap(({ source, name, kind }) => {
      const value = record[source];
      if (value === undefined) return [];
      const key = cased(name, 'pascal');
      const text = isDate(kind) ? dateValue(value, kind) : value === null ? null : String(value);
      return [text === null ? `<${key} i:nil="true" />` : `<${key}>${escaped(text)}</${key}>`];
    });
    return `<${name}>${members.join('')}</${name}>`;
  });
  const list = `ArrayOf${name}`;
  return `<?xml version="1.0" encoding="utf-8"?>\n<${list} xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${elements.join('')}</${list}>`;
}
