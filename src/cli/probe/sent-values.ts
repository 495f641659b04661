import { decodeText } from '../../extract/body.ts';
import { unsafeNumberText } from '../../extract/decimals.ts';
import { createDateReader } from '../../extract/times.ts';
import { plainName, type ResponseField } from '../../operations/fields.ts';
import type { Operation } from '../../operations/operation.ts';
import type { MadeCall, SentRecord } from './make-calls.ts';

// What records hold as they were sent.

/** The fields of responses of an operation's table. */
export const fieldsOf = ({ shapes: [{ table }] }: Operation): ResponseField[] =>
  table.fields.filter((field): field is ResponseField => field.from === 'response');

/** The key of a record for a name, however it is spelled; undefined if it has none. */
export function keyIn(record: SentRecord, name: string): string | undefined {
  const plain = plainName(name);
  return Object.keys(record).find((key) => plainName(key) === plain);
}

/** The value of this name as text; empty if there is none. */
export function textIn(record: SentRecord, name: string): string {
  const key = keyIn(record, name);
  return key === undefined ? '' : textOf(record[key]);
}

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return (unsafeNumberText(value) ?? String(value)).trim();
}

/** The day of a value; null if it is none. */
export function dayIn(record: SentRecord, zone: string, name: string): string | null {
  const read = createDateReader(zone)(textIn(record, name));
  return typeof read === 'string' ? read : null;
}

/** The body of a response as text; empty if it is none. */
export function bodyText({ response }: MadeCall): string {
  try {
    return response === null ? '' : decodeText(response.body);
  } catch {
    return '';
  }
}

/** The digits of a number that mean something: 10.0 and 10 are the same. Null for another text. */
export function significantDigits(text: string): string | null {
  if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text)) return null;
  const [mantissa = ''] = text.toLowerCase().split('e');
  const plain = mantissa.includes('.') ? mantissa.replace(/0+$/, '') : mantissa;
  return plain.replace(/\D/g, '').replace(/^0+/, '');
}
