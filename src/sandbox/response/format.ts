import { type Day, dayAt, dayStart, timeAt } from '../../core/days.ts';
import type { ResponseField } from '../../operations/fields.ts';
import { ZONE } from '../market/market.ts';
import type { SourceRecord, Value } from './record.ts';

/** How keys are cased: as in live responses (pascal), as declared (camel), or unusually. */
export const CASINGS = ['pascal', 'camel', 'upper', 'lower', 'mixed'] as const;
export type Casing = (typeof CASINGS)[number];

/** Live responses write these prefixes in upper case. */
const ACRONYMS = /^(isin|eps|ebit|eod|oi|ttq)(?=[A-Z]|$)/;

const XML_SIGNS: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Names of the root and of its items in published samples, by operation; without items, the root is the record. */
const XML_NAMES: Readonly<Record<string, readonly [root: string, item?: string]>> = {
  GetTop5GainersLosers: ['TopGainersLosersResult', 'TopGainersLosers'],
  GetTotalTradeHighlights: ['TotalTradeHighlightResult', 'TotalTradeHighlight'],
  GetFinancialRatios: ['FinResultFrEod'],
  GetFinRatioEOD: ['FinResultFrEod'],
  GetFinRatioSnapshot: ['FinResultFrEod'],
};

/** Of this operation, only these fields are attributes in the published sample. */
const MIXED = 'GetTotalTradeHighlights';
const MIXED_ATTRIBUTES = ['date', 'receivedAt', 'savedAt'];

/** Writes a declared name in a casing: `isin` → `ISIN`, `scripCode` → `ScripCode`. */
export function cased(name: string, casing: Casing): string {
  switch (casing) {
    case 'pascal': {
      const acronym = ACRONYMS.exec(name)?.[0];
      if (acronym !== undefined) return acronym.toUpperCase() + name.slice(acronym.length);
      return name.charAt(0).toUpperCase() + name.slice(1);
    }
    case 'camel':
      return name.charAt(0).toLowerCase() + name.slice(1);
    case 'upper':
      return name.toUpperCase();
    case 'lower':
      return name.toLowerCase();
    case 'mixed':
      return [...name].map((sign, at) => (at % 2 === 0 ? sign.toLowerCase() : sign.toUpperCase())).join('');
  }
}

/** How dates are written. `Milliseconds`: as numbers, of which those of times are in milliseconds. */
export type DateFormat = 'String' | 'Epoch' | 'Milliseconds';

/** `MM-DD-YYYY`. */
function dateText(day: Day): string {
  return `${day.slice(5, 7)}-${day.slice(8, 10)}-${day.slice(0, 4)}`;
}

const REMEMBERED = 10_000;
const texts = new Map<number, string>();

/** `MM-DD-YYYY HH:mm:ss` in Indian time. */
function dateTimeText(seconds: number): string {
  let text = texts.get(seconds);
  if (text === undefined) {
    text = `${dateText(dayAt(seconds, ZONE))} ${timeAt(seconds, ZONE)}`;
    // A day's records share their audit times.
    if (texts.size >= REMEMBERED) texts.clear();
    texts.set(seconds, text);
  }
  return text;
}

/** What the source sends for a missing date. */
const NO_DATE = '01-01-0001';
const NO_DATE_TIME = '01-01-0001 00:00:00';

/** Epoch seconds of a day's midnight. */
const dateEpoch = (day: Day) => dayStart(day, ZONE);

/** A date or date-time as text, or as the digits of a number unless `dates` is `String`; null for none. */
function dateValue(value: Value, kind: 'date' | 'datetime', dates: DateFormat): string | null {
  const isTime = kind === 'datetime';
  if (typeof value !== (isTime ? 'number' : 'string')) {
    if (dates === 'String') return isTime ? NO_DATE_TIME : NO_DATE;
    return dates === 'Epoch' ? null : '0';
  }
  if (dates === 'String') return isTime ? dateTimeText(Number(value)) : dateText(String(value));
  const inMilliseconds = isTime && dates === 'Milliseconds';
  return String(isTime ? Number(value) * (inMilliseconds ? 1_000 : 1) : dateEpoch(String(value)));
}

/** The same where texts are in quotes and numbers are not. */
function quotedDate(value: Value, kind: 'date' | 'datetime', dates: DateFormat): string | null {
  const written = dateValue(value, kind, dates);
  return written === null || dates !== 'String' ? written : `"${written}"`;
}

/** How responses are written. */
interface Style {
  readonly dates: DateFormat;
  /** Whether numbers in JSON are rounded to 15 digits. */
  readonly shortNumbers?: boolean;
}

export const ENVELOPES = [
  'value',
  'count',
  'wrong-count',
  'null-when-empty',
  'missing-when-empty',
  'bare-list',
  'bare-object',
] as const;
type Envelope = (typeof ENVELOPES)[number];

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Writes a value as a JSON token. Numbers given as text are copied, because a double could change their digits. */
function jsonValue(value: Value, kind: ResponseField['kind'], { dates, shortNumbers }: Style): string {
  if (kind === 'date' || kind === 'datetime') return quotedDate(value, kind, dates) ?? 'null';
  if (kind === 'text') return JSON.stringify(value === null || value === undefined ? '' : String(value));
  if (typeof value === 'string') return JSON_NUMBER.test(value) ? value : JSON.stringify(value);
  if (shortNumbers === true && typeof value === 'number') return String(Number(value.toPrecision(15)));
  return String(value ?? null);
}

/** Writes each record as a JSON object. */
export function jsonObjects(
  records: readonly SourceRecord[],
  fields: readonly ResponseField[],
  casing: Casing,
  style: Style,
): string[] {
  const keys = fields.map((field) => `${JSON.stringify(cased(field.source, casing))}:`);
  return records.map((record) => {
    let text = '';
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as ResponseField;
      const value = record[field.source];
      if (value === undefined) continue;
      text += `${text === '' ? '' : ','}${keys[i]}${jsonValue(value, field.kind, style)}`;
    }
    return `{${text}}`;
  });
}

/** Puts the objects into their envelope. */
export function jsonBody(objects: readonly string[], envelope: Envelope, casing: Casing): string {
  const value = JSON.stringify(cased('value', casing));
  const count = JSON.stringify(cased('count', casing));
  const list = `[${objects.join(',')}]`;
  const empty = objects.length === 0;
  switch (envelope) {
    case 'count':
      return `{${count}:${objects.length},${value}:${list}}`;
    case 'wrong-count':
      return `{${count}:${objects.length + 1},${value}:${list}}`;
    case 'null-when-empty':
      return `{${value}:${empty ? 'null' : list}}`;
    case 'missing-when-empty':
      return empty ? '{}' : `{${value}:${list}}`;
    case 'bare-list':
      return list;
    case 'bare-object':
      return objects.length === 1 ? (objects[0] as string) : `{${value}:${list}}`;
    case 'value':
      return `{${value}:${list}}`;
  }
}

/** Live CSV pads text to a fixed width. */
const TEXT_WIDTH = 12;

function csvCell(value: Value, kind: ResponseField['kind'], { dates, unquoted }: CsvStyle): string {
  if (kind === 'date' || kind === 'datetime') return quotedDate(value, kind, dates) ?? '';
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (unquoted === true) return kind === 'numeric' && Number.isInteger(value) ? `${value}.0` : String(value);
  const text = kind === 'text' ? String(value).padEnd(TEXT_WIDTH) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** How CSV is written. */
interface CsvStyle extends Style {
  /**
   * The header has ReceivedAt and SavedAt twice but rows have them once, as the live service does for
   * GetTotalTradeHighlights.
   */
  readonly repeatAudit: boolean;
  /** Columns in the opposite order, and quotes around dates only, even if a text contains a comma. */
  readonly unquoted?: boolean;
}

/** Writes header and rows. A field that no record has gets no column. */
export function csvBody(
  records: readonly SourceRecord[],
  fields: readonly ResponseField[],
  style: CsvStyle,
): string {
  const present = fields.filter(
    (field) => records.length === 0 || records.some((record) => record[field.source] !== undefined),
  );
  if (style.unquoted === true) present.reverse();
  const header = present.map((field) => cased(field.source, 'pascal'));
  if (style.repeatAudit) header.push('ReceivedAt', 'SavedAt');
  const rows = records.map((record) =>
    present.map((field) => csvCell(record[field.source], field.kind, style)).join(','),
  );
  return `${[header.join(','), ...rows].join('\r\n')}\r\n`;
}

/** `M-D-YYYY h:mm:ss AM`. */
function xmlTime(day: Day, time: string): string {
  const [hours = 0, ...rest] = time.split(':').map(Number);
  const two = (n: number) => String(n).padStart(2, '0');
  const [year, month, date] = day.split('-');
  const clock = [hours % 12 === 0 ? 12 : hours % 12, ...rest.map(two)].join(':');
  return `${Number(month)}-${Number(date)}-${year} ${clock} ${hours < 12 ? 'AM' : 'PM'}`;
}

/** The text of an element; null if it is marked as nil. */
function xmlText(value: Value, kind: ResponseField['kind'], dates: DateFormat): string | null {
  if (kind === 'date' || kind === 'datetime') {
    if (dates !== 'String') return dateValue(value, kind, dates);
    if (kind === 'date' && typeof value === 'string') return xmlTime(value, '00:00:00');
    const isTime = kind === 'datetime' && typeof value === 'number';
    return isTime ? xmlTime(dayAt(value, ZONE), timeAt(value, ZONE)) : xmlTime('0001-01-01', '00:00:00');
  }
  return value === null || value === undefined ? null : String(value);
}

/** A text as part of XML, which cannot contain most control characters. */
const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (sign) => XML_SIGNS[sign] as string).replace(/[^\P{Cc}\t\n\r]/gu, '\ufffd');

/** Writes the records as elements named like the operation, in a list as .NET writes it. */
export function xmlBody(
  name: string,
  records: readonly SourceRecord[],
  fields: readonly ResponseField[],
  dates: DateFormat,
): string {
  const elements = records.map((record) => {
    const members = fields.flatMap(({ source, kind }) => {
      const value = record[source];
      if (value === undefined) return [];
      const key = cased(source, 'pascal');
      const text = xmlText(value, kind, dates);
      if (text === null) return [`<${key} i:nil="true" />`];
      return [`<${key}>${escaped(text)}</${key}>`];
    });
    return `<${name}>${members.join('')}</${name}>`;
  });
  const list = `ArrayOf${name}`;
  return `<?xml version="1.0" encoding="utf-8"?>\n<${list} xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${elements.join('')}</${list}>`;
}

/** Writes the records as elements with attributes, as the published samples have them. */
export function xmlAttributes(
  operation: string,
  records: readonly SourceRecord[],
  fields: readonly ResponseField[],
  dates: DateFormat,
): string {
  const name = operation.replace(/^Get/, '');
  const [root, item] = XML_NAMES[operation] ?? [name, `${name}Item`];
  const isMixed = operation === MIXED;
  const partsOf = (record: SourceRecord) => {
    let attributes = '';
    let children = '';
    for (const { source, kind } of fields) {
      const value = record[source];
      if (value === undefined) continue;
      const isDate = kind === 'date' || kind === 'datetime';
      const text = isDate ? dateValue(value, kind, dates) : value === null ? '' : String(value);
      if (text === null) continue;
      // A name in XML has no space.
      const key = cased(source, 'pascal').replaceAll(' ', '_');
      if (isMixed && !MIXED_ATTRIBUTES.includes(source)) children += `<${key}>${escaped(text)}</${key}>`;
      else attributes += ` ${key}="${escaped(text)}"`;
    }
    return { attributes, children };
  };
  const element = (tag: string, record: SourceRecord, extra = '') => {
    const { attributes, children } = partsOf(record);
    const start = `<${tag}${extra}${attributes}`;
    return children === '' ? `${start} />` : `${start}>${children}</${tag}>`;
  };
  const [only] = records;
  // Facts come as a list, whatever the operation.
  const isBare = item === undefined && records.length === 1 && only !== undefined;
  const namespace = ' xmlns="clr-namespace:Results;assembly=Results"';
  const body = isBare
    ? element(root, only, namespace)
    : `<${root}><Value>${records.map((record) => element(item ?? 'Item', record)).join('')}</Value></${root}>`;
  return `<?xml version="1.0" encoding="utf-8"?>\n${body}`;
}
