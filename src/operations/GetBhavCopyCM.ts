import { defineOperation } from '../declaration/define-operation.ts';
import { defineTable } from '../declaration/table.ts';
import { deliveries } from './files/Deliveries.ts';
import { UDIFF_FIELDS } from './tables/udiff.ts';

/** Columns that only derivatives have. */
const DERIVATIVES = [
  'expiry_date',
  'actual_expiry_date',
  'strike_price',
  'option_type',
  'underlying_price',
  'open_interest',
  'open_interest_change',
];

export const bhavcopy = defineTable({
  name: 'bhavcopy_cm',
  comment:
    'End-of-day prices of the cash market (the bhav copies of the exchanges), one row per symbol, series and trading day. Partitioned by year of trade_date.',
  key: ['exchange', 'symbol', 'series', 'trade_date'],
  partitionBy: 'trade_date',
  names: [
    {
      symbol: 'symbol',
      series: 'series',
      isin: 'isin',
      scripCode: 'exchange_instrument_id',
      name: 'instrument_full_name',
      day: ['trade_date'],
    },
  ],
  fields: UDIFF_FIELDS.map((field) =>
    DERIVATIVES.includes(field.column)
      ? { ...field, meaning: `${field.meaning} Means nothing in the cash market.`, meaningless: true }
      : field,
  ),
});

export default defineOperation({
  name: 'GetBhavCopyCM',
  title: 'Prices',
  group: 'prices',
  summary: 'End-of-day prices and volumes of the cash market',
  exchanges: ['BSE', 'NSE'],
  request: { dates: 'range', instruments: 'many', dTFormat: true, options: [] },
  shapes: [
    {
      table: bhavcopy,
      has: ['symbol', 'tradDt'],
      symbolColumn: 'symbol',
      exchangeColumn: 'source_exchange',
      dated: true,
      fullSet: 'days',
    },
  ],
  udiff: { segment: 'CM', exchanges: { BSE: 'BSE', NSE: 'NSE' } },
  alsoInFiles: [deliveries],
  windows: { per: 'session' },
  schedule: { at: '21:15', on: 'daily', hasLookback: true, order: 1 },
  emptyIsNormal: false,
});
