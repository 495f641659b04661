import type { AnswerField } from '../../operations/fields.ts';
import { type Casing, cased } from './casing.ts';
import { type DateFormat, dateEpoch, dateText, dateTimeText, NO_DATE, NO_DATE_TIME } from './dates.ts';
import type { SourceRecord, Value } from './record.ts';

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

const NUMBER_TOKEN = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A value as a JSON token. Digits given as text stay as they are: no trip through a double. */
function token(value: Value, kind: AnswerField['kind'], dates: DateFormat): string {
  if (kind === 'date') {
    if (dates === 'Epoch') return typeof value === 'string' ? String(dateEpoch(value)) : 'null';
    return `"${typeof value === 'string' ? dateText(value) : NO_DATE}"`;
  }
  if (kind === 'datetime') {
    if (dates === 'Epoch') return typeof value === 'number' ? String(value) : 'null';
    return `"${typeof value === 'number' ? dateTimeText(value) : NO_DATE_TIME}"`;
  }
  if (kind === 'text') return JSON.stringify(value === null || value === undefined ? '' : String(value));
  if (typeof value === 'string') return NUMBER_TOKEN.test(value) ? value : JSON.stringify(value);
  return String(value ?? null);
}

/** Each record as the text of one JSON object. */
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
      text += `${text === '' ? '' : ','}${keys[i]}${token(value, field.kind, dates)}`;
    }
    return `{${text}}`;
  });
}

/** The whole body: the objects in their envelope (spec 2.1; its live variants in the field notes). */
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
