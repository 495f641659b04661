import { date, int8, numeric, text } from '../fields.ts';
import { defineFileSet } from '../operation.ts';
import { defineTable } from '../table.ts';

/**
 * Filled from NSE's delivery position files, from the delivery columns of its full bhav copies, and by operations that
 * name it as a table that they fill besides.
 */
export const deliveries = defineTable({
  name: 'deliveries',
  comment:
    'How much of what was traded was delivered, one row per symbol, series and session; from files that are imported and from operations that are enabled. BSE states no groups: there the series is empty.',
  // The day early, because days are loaded and joined. Not partitioned: Postgres 15 would join all of it whenever
  // somebody selects anything of market.prices.
  key: ['exchange', 'trade_date', 'symbol', 'series'],
  fields: [
    text('symbol', 'symbol', 'Ticker symbol of that day; BSE: the scrip code where none is reported.', {
      required: true,
    }),
    text('series', 'series', 'Series the security trades in; empty for BSE.', { absent: '' }),
    date('tradDt', 'trade_date', 'Trading day (session).', { required: true }),
    int8(
      'tradedQuantity',
      'traded_quantity',
      'Total traded quantity, as the file or response with the deliveries has it.',
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
