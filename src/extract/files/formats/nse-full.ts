import { defineFormat } from '../file-format.ts';

/** The column of the day; programs write the second name. */
const DAY = { DATE1: 'tradDt', DATE: 'tradDt' } as const;

/** The full bhav copy of NSE. The average price has no field. */
export default defineFormat({
  name: 'nse-full',
  files: ['sec_bhavdata_full_DDMMYYYY.csv'],
  dataSet: 'GetBhavCopyCM',
  exchange: 'NSE',
  marks: ['SYMBOL', 'SERIES', 'TURNOVER_LACS'],
  needs: [
    'PREV_CLOSE',
    'OPEN_PRICE',
    'HIGH_PRICE',
    'LOW_PRICE',
    'LAST_PRICE',
    'CLOSE_PRICE',
    'TTL_TRD_QNTY',
    'NO_OF_TRADES',
  ],
  columns: {
    ...DAY,
    SYMBOL: 'symbol',
    SERIES: 'sctySrs',
    PREV_CLOSE: 'prevClosePrice',
    OPEN_PRICE: 'openPrice',
    HIGH_PRICE: 'highPrice',
    LOW_PRICE: 'lowPrice',
    LAST_PRICE: 'lastPrice',
    CLOSE_PRICE: 'closePrice',
    TTL_TRD_QNTY: 'ttq',
    TURNOVER_LACS: 'ttlTrfVal',
    NO_OF_TRADES: 'totalTradesNo',
  },
  units: { ttlTrfVal: 'lakhs' },
  also: {
    dataSet: 'Deliveries',
    columns: {
      ...DAY,
      SYMBOL: 'symbol',
      SERIES: 'series',
      TTL_TRD_QNTY: 'tradedQuantity',
      DELIV_QTY: 'deliveredQuantity',
      DELIV_PER: 'deliveredPercent',
    },
  },
  // For some securities only the delivery positions have them.
  sometimesBlank: ['delivered_quantity', 'delivered_percent'],
  // Two decimals of a lakh.
  rounded: { ttlTrfVal: 1_000 },
});
