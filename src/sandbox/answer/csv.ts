import type { AnswerField } from '../../operations/fields.ts';
import { cased } from './casing.ts';
import { type DateFormat, dateEpoch, dateText, dateTimeText, NO_DATE, NO_DATE_TIME } from './dates.ts';
import type { SourceRecord, Value } from './record.ts';

/** Live CSV pads text to a fixed width (field notes). */
const TEXT_WIDTH = 12;

function cell(value: Value, kind: AnswerField['kind'], dates: DateFormat): string {
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
 * Header and rows. Fields that no record carries have no column.
 *
 * @param repeatAudit the header names ReceivedAt and SavedAt twice while rows hold them once, as
 *   GetTotalTradeHighlights does (field notes).
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
    present.map((field) => cell(record[field.source], field.kind, dates)).join(','),
  );
  return `${[header.join(','), ...rows].join('\r\n')}\r\n`;
}
