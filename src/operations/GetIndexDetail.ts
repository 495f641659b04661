import { defineOperation } from '../declaration/define-operation.ts';
import { type Compute, date, derived, int8, numeric, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';

const POINTS = { unit: 'points' } as const;

/** Reads a source field as a kind; null where it cannot be read so. */
const readAs =
  (source: string, kind: 'numeric' | 'date'): Compute =>
  (_get, read) =>
    read(source, kind);

/** The schema has the value of an earlier trading day, the glossary its day: a column for each. */
const earlier = <const Name extends string>(source: string, name: Name, when: string) => [
  numeric(source, `${name}_value`, `Value ${when}; null where the source sends the day.`, {
    ...POINTS,
    compute: readAs(source, 'numeric'),
  }),
  derived(
    `${name}_date`,
    'date',
    `Day of the value ${when}; null where the source sends the value.`,
    readAs(source, 'date'),
  ),
];

const table = defineTable({
  name: 'index_values',
  comment: 'End-of-day values of the indices, one row an index and trading day.',
  key: ['exchange', 'index_code', 'trade_date'],
  fields: [
    text('IndexCode', 'index_code', 'Code of the index; its name where the source sends no code.', {
      required: true,
      orElse: ['IndexName'],
    }),
    date('Date', 'trade_date', 'Trading day.', { required: true }),
    text('IndexName', 'index_name', 'Name of the index.'),
    numeric('Opening', 'open_value', 'First value of the day.', POINTS),
    numeric('High', 'high_value', 'Highest value of the day.', POINTS),
    numeric('Low', 'low_value', 'Lowest value of the day.', POINTS),
    numeric('Closing', 'close_value', 'Last value of the day.', POINTS),
    numeric('Change', 'value_change', 'Change against the trading day before.', POINTS),
    numeric('PerChange', 'change_percent', 'Change against the trading day before.', { unit: 'percent' }),
    ...earlier('LastDay', 'previous_session', 'of the trading day before'),
    ...earlier('WeekAgo', 'week_ago', 'a week ago'),
    ...earlier('MonthAgo', 'month_ago', 'a month ago'),
    ...earlier('YearAgo', 'year_ago', 'a year ago'),
    // Files of NSE alone have these.
    int8('Volume', 'traded_quantity', 'Traded quantity of its shares.', { unit: 'shares' }),
    numeric('Turnover', 'turnover', 'Traded value of its shares.', { unit: 'rupees' }),
    numeric('PE', 'pe_ratio', 'Price to earnings.', { unit: 'ratio' }),
    numeric('PB', 'pb_ratio', 'Price to book value.', { unit: 'ratio' }),
    numeric('DivYield', 'dividend_yield_percent', 'Dividend yield.', { unit: 'percent' }),
  ],
});

/**
 * Documented: the declared fields; no sample is printed, so this one is made from them. Assumed: that a request without
 * instruments lists every index of the day. The schema has numbers in `LastDay` and the like, the glossary dates: both
 * are read.
 */
export default defineOperation({
  name: 'GetIndexDetail',
  title: 'Index values',
  group: 'prices',
  summary: 'End-of-day values of indices',
  exchanges: ['BSE_IDX'],
  request: { dates: 'range', instruments: 'many', dTFormat: true, options: [] },
  shapes: [{ table, has: ['Date'], hasOneOf: ['IndexCode', 'IndexName'], dated: true, fullSet: 'none' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:38', on: 'daily', hasLookback: true, order: 2 },
  emptyIsNormal: false,
});
