import { defineFormat } from '../../file-format.ts';

const PRICE = 'Trade Price / Wght. Avg. Price';

/** Bulk and block deals of NSE have the same columns; the name of a file says which they are. */
const deals = (named: string, dataSet: string, files: readonly [string, ...string[]]) =>
  defineFormat({
    name: `nse-${named}-deals`,
    files,
    named,
    dataSet,
    exchange: 'NSE',
    marks: ['Date', 'Symbol', 'Client Name', 'Buy/Sell', 'Quantity Traded', PRICE],
    columns: {
      Date: 'DealDate',
      Symbol: 'ScripId',
      'Security Name': 'ScripName',
      'Client Name': 'ClientName',
      'Buy/Sell': 'DealType',
      'Quantity Traded': 'Qty',
      [PRICE]: 'Price',
    },
    values: { DealType: { BUY: 'B', SELL: 'S' } },
    passedOverWithout: { field: 'ScripId', because: 'say that there are no records' },
  });

export default [
  deals('bulk', 'GetBulkDeals', ['bulk.csv', 'Bulk-Deals-DD-MM-YYYY-to-DD-MM-YYYY.csv']),
  deals('block', 'GetBlockDeals', ['block.csv', 'Block-Deals-DD-MM-YYYY-to-DD-MM-YYYY.csv']),
];
