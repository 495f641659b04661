import { UDIFF_COLUMNS } from '../../src/operations/tables/udiff.ts';
import { PLACEHOLDER, record } from './records.ts';

/** By the field's name in lower case: the service spells it in several ways. */
type Values = ReadonlyMap<string, unknown>;

const COLUMNS = Object.entries(UDIFF_COLUMNS).map(([column, field]) => ({
  column,
  field: field.toLowerCase(),
}));

/** The exchange's own file of a trading day, as CSV in its common format. */
export function udiffFile(size: number, variant: number, day: string): string {
  const lines = [COLUMNS.map(({ column }) => column).join(',')];
  for (let instrument = 0; instrument < size; instrument++) {
    const values: Values = new Map(
      Object.entries(record(instrument, variant)).map(([field, value]) => [field.toLowerCase(), value]),
    );
    lines.push(COLUMNS.map(({ field }) => cell(values.get(field), day)).join(','));
  }
  return `${lines.join('\n')}\n`;
}

function cell(value: unknown, day: string): string {
  if (value === null || value === undefined || value === '01-01-0001') return '';
  return value === PLACEHOLDER ? day : String(value);
}
