import { defineBuiltIn } from '../built-in.ts';
import { date, int4, int8, numeric, text } from '../fields.ts';
import { deliveries } from '../files/Deliveries.ts';
import { defineTable, readFrom } from '../table.ts';
import { previousDays, tickerIn, YESTERDAY } from './shared.ts';

const SHARES = { unit: 'shares' } as const;
const AS_SENT = { unit: 'as sent' } as const;

const NAMES = ['ScripId', 'Symbol', 'ScripName'] as const;
const symbol = tickerIn(NAMES);

const table = defineTable({
  name: 'delivery_volumes',
  comment:
    'What was traded and delivered of each security of BSE on each trading day; market.deliveries has the quantities too.',
  key: ['exchange', 'trade_date', 'scrip_code'],
  fields: [
    date('GrossDate', 'trade_date', 'Trading day of the delivery.', { required: true, orElse: ['Date'] }),
    int4('ScripCode', 'scrip_code', 'Security code of the exchange.', { required: true }),
    text('ScripId', 'scrip_id', 'Security id as sent.', { orElse: ['Symbol'] }),
    symbol,
    text('ScripName', 'scrip_name', 'Name of the security, or its ticker symbol.'),
    int8('TradedQty', 'traded_quantity', 'Traded quantity.', SHARES),
    numeric('Turnover', 'traded_value', 'Traded value.', AS_SENT),
    int8('DeliveryQty', 'delivered_quantity', 'Quantity that was delivered.', SHARES),
    numeric('DeliveryValue', 'delivered_value', 'Value of what was delivered.', AS_SENT),
    numeric('DeliveryQtyPct', 'delivered_percent', 'Delivered quantity as a share of the traded one.', {
      unit: 'percent',
    }),
  ],
});

/**
 * Documented: the declared fields and the spans, which reach seven days back; no sample is printed, so this one is made
 * from the fields. `ScripId` is only in the prose: where it is missing and `ScripName` is no ticker symbol, the code
 * stands for it in market.deliveries. Assumed: that a span ends with today and lists its days in full. Units of values
 * are not stated.
 */
export default defineBuiltIn({
  name: 'GetDeliveryVolumes',
  title: 'Delivered volumes',
  group: 'prices',
  summary: 'Delivered quantity of each security of BSE',
  exchanges: ['BSE'],
  request: {
    dates: 'spans',
    spans: [YESTERDAY, ...previousDays([7])],
    instruments: 'one',
    dTFormat: true,
    options: [],
  },
  shapes: [
    {
      table,
      has: ['ScripCode', 'DeliveryQty'],
      hasOneOf: ['GrossDate', 'Date'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  also: readFrom(deliveries, {
    symbol: {
      source: 'ScripCode',
      compute: (get, read, memory) =>
        symbol.value(get, read, memory) ?? (read('ScripCode', 'text') as string),
    },
    trade_date: { source: 'GrossDate', orElse: ['Date'] },
    traded_quantity: { source: 'TradedQty' },
    delivered_quantity: { source: 'DeliveryQty' },
    delivered_percent: { source: 'DeliveryQtyPct' },
  }),
  windows: { per: 'range', days: 7, everyDay: false },
  schedule: { at: '21:18', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
