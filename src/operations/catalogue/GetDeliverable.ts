import { defineBuiltIn } from '../built-in.ts';
import { int8, numeric, text } from '../fields.ts';
import { deliveries } from '../files/Deliveries.ts';
import { defineTable, readFrom } from '../table.ts';
import { closePrice, previousClosePrice, tickerIn, tradeDate } from './shared.ts';

const RUPEES = { unit: 'rupees' } as const;
const SHARES = { unit: 'shares' } as const;

const symbol = tickerIn(['ScripId', 'Symbol']);

const table = defineTable({
  name: 'deliverable_prices',
  comment:
    'Prices of each security of NSE on each trading day, with what was delivered; market.deliveries has the quantities too.',
  key: ['exchange', 'trade_date', 'scrip_id', 'series'],
  fields: [
    tradeDate,
    text('ScripId', 'scrip_id', 'Security id as sent; may carry a series suffix after a dot.', {
      required: true,
      orElse: ['Symbol'],
    }),
    text('Series', 'series', 'Series the security trades in; empty when left out.', { absent: '' }),
    symbol,
    text('ScripName', 'scrip_name', 'Name of the security; empty in the published sample.'),
    numeric('Open', 'open_price', 'Opening price.', RUPEES),
    numeric('High', 'high_price', 'Highest price.', RUPEES),
    numeric('Low', 'low_price', 'Lowest price.', RUPEES),
    closePrice('Close'),
    previousClosePrice('PrevClose'),
    numeric('LastTradedPrice', 'last_price', 'Price of the last trade.', RUPEES),
    numeric('AverageTradedPrice', 'average_price', 'Average price of what was traded.', RUPEES),
    int8('TradedQty', 'traded_quantity', 'Traded quantity.', SHARES),
    numeric('Turnover', 'turnover_lakh', 'Traded value.', { unit: 'lakhs of rupees' }),
    int8('NoOfTrades', 'trade_count', 'Number of trades.', { unit: 'trades' }),
    int8('DelQty', 'delivered_quantity', 'Quantity that was delivered.', SHARES),
    numeric('DelQtyPer', 'delivered_percent', 'Delivered quantity as a share of the traded one.', {
      unit: 'percent',
    }),
  ],
});

/**
 * Documented: the fields of the sample (none are declared), and the parameter `dTformat`. Assumed: that a request without
 * an instrument lists every security of the day, and the unit of the turnover (traded quantity times average price is
 * the same number of lakhs). The quantities are in market.deliveries as well, as from NSE's files.
 */
export default defineBuiltIn({
  name: 'GetDeliverable',
  title: 'Prices with deliveries',
  group: 'prices',
  summary: 'Prices and delivered quantity of each security of NSE',
  exchanges: ['NSE'],
  request: { dates: 'day', instruments: 'one', dTFormat: 'dTformat', options: [] },
  shapes: [
    {
      table,
      has: ['Date', 'DelQty'],
      namedBy: ['ScripId', 'Symbol'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  also: readFrom(deliveries, {
    symbol: { source: 'ScripId', compute: symbol.value },
    trade_date: { source: 'Date' },
    traded_quantity: { source: 'TradedQty' },
    delivered_quantity: { source: 'DelQty' },
    delivered_percent: { source: 'DelQtyPer' },
  }),
  windows: { per: 'session' },
  schedule: { at: '21:17', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
