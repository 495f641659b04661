import { type Day, dayAt, dayStart, timeAt } from '../../core/days.ts';
import type { AnswerField } from '../../operations/fields.ts';
import { ZONE } from '../market/market.ts';
import type { SourceRecord, Value } from './record.ts';

/** How keys are cased: as in live answers (pascal), as declared (camel), or unusually. */
export const CASINGS = ['pascal', 'camel', 'upper', 'lower', 'mixed'] as const;
export type Casing = (typeof CASINGS)[number];

/** Live answers write these prefixes in upper case. */
const ACRONYMS = /^(isin|eps|ebit|eod|oi|ttq)(?=[A-Z]|$)/;

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

type DateFormat = 'String' | 'Epoch';

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
function dateEpoch(day: Day): number {
  return dayStart(day, ZONE);
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
export type Envelope = (typeof ENVELOPES)[number];

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Writes a value as a JSON token. Numbers given as text are copied, because a double could change their digits. */
function jsonValue(value: Value, kind: AnswerField['kind'], dates: DateFormat): string {
  if (kind === 'date') {
    if (dates === 'Epoch') return typeof value === 'string' ? String(dateEpoch(value)) : 'null';
    return `"${typeof value === 'string' ? dateText(value) : NO_DATE}"`;
  }
  if (kind === 'datetime') {
    if (dates === 'Epoch') return typeof value === 'number' ? String(value) : 'null';
    return `"${typeof value === 'number' ? dateTimeText(value) : NO_DATE_TIME}"`;
  }
  if (kind === 'text') return JSON.stringify(value === null || value === undefined ? '' : String(value));
  if (typeof value === 'string') return JSON_NUMBER.test(value) ? value : JSON.stringify(value);
  return String(value ?? null);
}

/** Writes each record as a JSON object. */
export function jsonObjects(
  records: readonly SourceRecord[],
  fields: readonly AnswerField[],
  casing: Casing,
  dates: DateFormat,
): string[] {
  const keys = fields.map((field) => `${JSON.stringify(cased(field.source, casing))}:`);
  return records.map((record) => {
    let text = '';
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as AnswerField;
      const value = record[field.source];
      if (value === undefined) continue;
      text += `${text === '' ? '' : ','}${keys[i]}${jsonValue(value, field.kind, dates)}`;
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

function csvCell(value: Value, kind: AnswerField['kind'], dates: DateFormat): string {
  if (kind === 'date') {
    if (dates === 'Epoch') return typeof value === 'string' ? String(dateEpoch(value)) : '';
    return `"${typeof value === 'string' ? dateText(value) : NO_DATE}"`;
  }
  if (kind === 'datetime') {
    if (dates === 'Epoch') return typeof value === 'number' ? String(value) : '';
    return `"${typeof value === 'number' ? dateTimeText(value) : NO_DATE_TIME}"`;
  }
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  const text = kind === 'text' ? String(value).padEnd(TEXT_WIDTH) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Writes header and rows. A field that no record has gets no column.
 *
 * @param repeatAudit the header has ReceivedAt and SavedAt twice but rows have them once, as the live service does for
 * GetTotalTradeHighlights.
 */
export function csvBody(
  records: readonly SourceRecord[],
  fields: readonly AnswerField[],
  dates: DateFormat,
  repeatAudit: boolean,
): string {
  const present = fields.filter(
    (field) => records.length === 0 || records.some((record) => record[field.source] !== undefined),
  );
  const header = present.map((field) => cased(field.source, 'pascal'));
  if (repeatAudit) header.push('ReceivedAt', 'SavedAt');
  const rows = records.map((record) =>
    present.map((field) => csvCell(record[field.source], field.kind, dates)).join(','),
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
function xmlText(value: Value, kind: AnswerField['kind'], dates: DateFormat): string | null {
  if (kind === 'date' || kind === 'datetime') {
    const isDate = kind === 'date' && typeof value === 'string';
    const isTime = kind === 'datetime' && typeof value === 'number';
    if (dates === 'Epoch') return isDate ? String(dateEpoch(value)) : isTime ? String(value) : null;
    if (isDate) return xmlTime(value, '00:00:00');
    return isTime ? xmlTime(dayAt(value, ZONE), timeAt(value, ZONE)) : xmlTime('0001-01-01', '00:00:00');
  }
  return value === null || value === undefined ? null : String(value);
}

const XML_SIGNS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Writes the records as elements named like the operation, in a list as .NET writes it. */
export function xmlBody(
  name: string,
  records: readonly SourceRecord[],
  fields: readonly AnswerField[],
  dates: DateFormat,
): string {
  const elements = records.map((record) => {
    const members = fields.flatMap(({ source, kind }) => {
      const value = record[source];
      if (value === undefined) return [];
      const key = cased(source, 'pascal');
      const text = xmlText(value, kind, dates);
      if (text === null) return [`<${key} i:nil="true" />`];
      // XML cannot contain most control characters.
      const safe = text
        .replace(/[&<>]/g, (sign) => XML_SIGNS[sign] as string)
        .replace(/[^\P{Cc}\t\n\r]/gu, '\ufffd');
      return [`<${key}>${safe}</${key}>`];
    });
    return `<${name}>${members.join('')}</${name}>`;
  });
  const list = `ArrayOf${name}`;
  return `<?xml version="1.0" encoding="utf-8"?>\n<${list} xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${elements.join('')}</${list}>`;
}
