import { defineFormat } from '../file-format.ts';

/** Securities in which NSE allows no new positions in derivatives: a title with the day, then numbered symbols. */
export default defineFormat({
  name: 'nse-bans',
  files: ['fo_secban_DDMMYYYY.csv'],
  dataSet: 'GetBannedSecurities',
  exchange: 'NSE',
  title: /securities in ban for trade date (\d{1,2}-[a-z]{3,9}-\d{4})/i,
  header: ['NUMBER', 'SYMBOL'],
  mayBeEmpty: true,
  day: { field: 'Date' },
  marks: ['NUMBER', 'SYMBOL'],
  columns: { SYMBOL: 'Symbol' },
});
