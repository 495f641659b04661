import { type Day, dayAt, timeAt } from '../../core/days.ts';
import type { AnswerField } from '../../operations/fields.ts';
import { ZONE } from '../market/market.ts';
import { cased, type DateFormat, dateValue } from './format.ts';
import type { SourceRecord, Value } from './record.ts';

/** `M-D-YYYY h:mm:ss AM`. */
function xmlTime(day: Day, time: string): string {
  const [hours = 0, ...rest] = time.split(':').map(Number);
  const two = (n: number) => String(n).padStart(2, '0');
  const [year, month, date] = day.split('-');
  const clock = [hours % 12 === 0 ? 12 : hours % 12, ...rest.map(two)].join(':');
  return `${Number(month)}-${Number(date)}-${year} ${clock} ${hours < 12 ? 'AM' : 'PM'}`;
}

/** A date or time as JSON would write it; null for none. */
function plainDate(value: Value, kind: 'date' | 'datetime', dates: DateFormat): string | null {
  const written = dateValue(value, kind, dates);
  if (written === null) return null;
  return 'text' in written ? written.text : written.digits;
}

/** The text of an element; null if it is marked as nil. */
function xmlText(value: Value, kind: AnswerField['kind'], dates: DateFormat): string | null {
  if (kind === 'date' || kind === 'datetime') {
    if (dates !== 'String') return plainDate(value, kind, dates);
    if (kind === 'date' && typeof value === 'string') return xmlTime(value, '00:00:00');
    const isTime = kind === 'datetime' && typeof value === 'number';
    return isTime ? xmlTime(dayAt(value, ZONE), timeAt(value, ZONE)) : xmlTime('0001-01-01', '00:00:00');
  }
  return value === null || value === undefined ? null : String(value);
}

const XML_SIGNS: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** A text as part of XML, which cannot contain most control characters. */
const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (sign) => XML_SIGNS[sign] as string).replace(/[^\P{Cc}\t\n\r]/gu, '\ufffd');

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
      return [`<${key}>${escaped(text)}</${key}>`];
    });
    return `<${name}>${members.join('')}</${name}>`;
  });
  const list = `ArrayOf${name}`;
  return `<?xml version="1.0" encoding="utf-8"?>\n<${list} xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${elements.join('')}</${list}>`;
}

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

/** Writes the records as elements with attributes, as the published samples have them. */
export function xmlAttributes(
  operation: string,
  records: readonly SourceRecord[],
  fields: readonly AnswerField[],
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
      const text = isDate ? plainDate(value, kind, dates) : value === null ? '' : String(value);
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
