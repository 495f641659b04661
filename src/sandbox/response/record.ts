import { type Day, dayStart } from '../../core/days.ts';
import { MARKET_ZONE } from '../../core/exchanges.ts';
import type { ResponseField } from '../../declaration/fields.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { hashText } from '../market/hash.ts';

/**
 * A value before it is written: days as `YYYY-MM-DD`, times as epoch seconds, numbers as numbers or, to keep every
 * digit, as text. `null` is written as an empty value; `undefined` is left out, for fields that live responses do not
 * have.
 */
export type Value = string | number | boolean | null | undefined;

/** One record, keyed by the service's field names. */
export type SourceRecord = Readonly<Record<string, Value>>;

/** The fields of a table that responses contain, in declared order. */
export function responseFields(table: TableDefinition): ResponseField[] {
  return table.fields.filter((field): field is ResponseField => field.from === 'response');
}

/**
 * Adds plausible values for fields that are not simulated, so that a field added to an operation file is served at
 * once.
 *
 * @param identity what the record is about: the same identity always gets the same values.
 * @param day that of its dates.
 */
export function complete(
  record: SourceRecord,
  fields: readonly ResponseField[],
  identity: string,
  day: Day = '2025-01-01',
): SourceRecord {
  const missing = fields.filter((field) => !(field.source in record));
  if (missing.length === 0) return record;
  return {
    ...record,
    ...Object.fromEntries(missing.map((field) => [field.source, invent(field, identity, day)])),
  };
}

/** A plausible value for a field, derived from its kind. */
function invent(field: ResponseField, identity: string, day: Day): Value {
  const seed = hashText(`${identity} ${field.source}`);
  switch (field.kind) {
    case 'text':
      return `${field.source.slice(0, 4).toUpperCase()}${seed % 1000}`;
    case 'int2':
    case 'int4':
    case 'int8':
      // A code of 0 names no instrument.
      return 1 + (seed % 9_999);
    case 'numeric':
      return (seed % 1_000_000) / 100;
    case 'boolean':
      return seed % 2 === 0;
    case 'date':
      return day;
    case 'datetime':
      return dayStart(day, MARKET_ZONE) + 75_600 + (seed % 60);
  }
}
