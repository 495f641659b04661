import { date, int8, numeric, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

/** Filled from NSE's delivery position files, and from the delivery columns of its full bhav copies. */
export const deliveries = defineTable({
  name: 'deliveries',
  comment:
    'How much of what was traded was delivered, one row per symbol, series and trading day; from files of NSE.',
  // The day early, because days are loaded and joined. Not partitioned: Postgres 15 would join all of it whenever
  // somebody selects anything of market.prices.
  key: ['exchange', 'trade_date', 'symbol', 'series'],
  fields: [
    text('symbol', 'symbol', 'Ticker symbol of that day.', { required: true }),
    text('series', 'series', 'Series the security trades in.', { absent: '' }),
    date('tradDt', 'trade_date', 'Trading day.', { required: true }),
    int8(
      'tradedQuantity',
      'traded_quantity',
      'Total traded quantity, as the file with the deliveries has it.',
      {
        unit: 'shares',
      },
    ),
    int8(
      'deliveredQuantity',
      'delivered_quantity',
      'Quantity that was delivered; null where the exchange publishes none, as for series that are always delivered.',
      { unit: 'shares' },
    ),
    numeric(
      'deliveredPercent',
      'delivered_percent',
      'delivered_quantity in percent of traded_quantity, as printed.',
      { unit: 'percent' },
    ),
  ],
});

export default defineFileSet({
  name: 'Deliveries',
  title: 'Deliveries',
  group: 'prices',
  summary: "NSE's delivery positions",
  shapes: [{ table: deliveries, has: ['deliveredQuantity'], dated: true, fullSet: 'days' }],
});
