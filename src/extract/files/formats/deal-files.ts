import { defineFormat, type FileFormat } from '../file-format.ts';

const PRICE = 'Trade Price / Wght. Avg. Price';

/** Bulk and block deals have the same columns, so the name of a file says which they are. */
type Deals = Pick<FileFormat, 'name' | 'dataSet' | 'files'> & Partial<Pick<FileFormat, 'wordInName'>>;

const BULK = { name: 'bulk-deals', dataSet: 'GetBulkDeals' };
const BLOCK = { name: 'block-deals', dataSet: 'GetBlockDeals', wordInName: 'block' };

const shared = {
  // BSE calls a purchase P or B.
  values: { DealType: { BUY: 'B', SELL: 'S', P: 'B' } },
  passedOverWithout: { field: 'ClientName', because: 'say that there are no records' },
} as const;

const nse = (deals: Deals, ...furtherMarks: string[]) =>
  defineFormat({
    ...deals,
    ...shared,
    name: `nse-${deals.name}`,
    exchange: 'NSE',
    marks: ['Date', 'Symbol', 'Client Name', 'Buy/Sell', 'Quantity Traded', PRICE, ...furtherMarks],
    columns: {
      Date: 'DealDate',
      Symbol: 'ScripId',
      'Security Name': 'ScripName',
      'Client Name': 'ClientName',
      'Buy/Sell': 'DealType',
      'Quantity Traded': 'Qty',
      [PRICE]: 'Price',
    },
  });

const bse = (deals: Deals) =>
  defineFormat({
    ...deals,
    ...shared,
    name: `bse-${deals.name}`,
    exchange: 'BSE',
    hasSlashes: true,
    marks: ['Deal Date', 'Security Code', 'Client Name', 'Deal Type', 'Quantity', 'Price'],
    columns: {
      'Deal Date': 'DealDate',
      'Security Code': 'ScripCode',
      'Security Name': 'ScripName',
      Company: 'ScripName',
      'Client Name': 'ClientName',
      'Deal Type': 'DealType',
      Quantity: 'Qty',
      Price: 'Price',
    },
  });

export default [
  nse({ ...BULK, files: ['bulk.csv', 'Bulk-Deals-DD-MM-YYYY-to-DD-MM-YYYY.csv'], wordInName: 'bulk' }),
  // Under any name: only bulk deals have remarks.
  nse({ ...BULK, files: ['bulk.csv'] }, 'Remarks'),
  nse({ ...BLOCK, files: ['block.csv', 'Block-Deals-DD-MM-YYYY-to-DD-MM-YYYY.csv'] }),
  bse({ ...BULK, files: ['Bulk_Deals.csv'], wordInName: 'bulk' }),
  bse({ ...BLOCK, files: ['Block_Deals.csv'] }),
];
