import { defineFormat } from '../file-format.ts';

/** The bhav copy of NSE until July 2024; the oldest files lack TOTALTRADES and ISIN. */
export default defineFormat({
  name: 'nse-bhav',
  files: ['cmDDMMMYYYYbhav.csv'],
  dataSet: 'GetBhavCopyCM',
  // The last price of the full bhav copy is now and then another one.
  rank: 2,
  exchange: 'NSE',
  marks: ['SYMBOL', 'SERIES', 'TIMESTAMP', 'TOTTRDQTY'],
  needs: ['OPEN', 'HIGH', 'LOW', 'CLOSE', 'LAST', 'PREVCLOSE', 'TOTTRDVAL'],
  columns: {
    SYMBOL: 'symbol',
    SERIES: 'sctySrs',
    TIMESTAMP: 'tradDt',
    ISIN: 'isin',
    OPEN: 'openPrice',
    HIGH: 'highPrice',
    LOW: 'lowPrice',
    CLOSE: 'closePrice',
    LAST: 'lastPrice',
    PREVCLOSE: 'prevClosePrice',
    TOTTRDQTY: 'ttq',
    TOTTRDVAL: 'ttlTrfVal',
    TOTALTRADES: 'totalTradesNo',
  },
});
