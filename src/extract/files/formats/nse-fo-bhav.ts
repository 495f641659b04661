import { defineFormat } from '../file-format.ts';

/** The bhav copy of NSE's derivatives until July 2024: quantity in contracts, open interest in units of the underlying. */
export default defineFormat({
  name: 'nse-fo-bhav',
  files: ['foDDMMMYYYYbhav.csv'],
  dataSet: 'GetBhavCopyFO',
  rank: 2,
  exchange: 'NFO',
  marks: ['INSTRUMENT', 'SYMBOL', 'EXPIRY_DT', 'CONTRACTS'],
  needs: [
    'STRIKE_PR',
    ['OPTION_TYP', 'OPTIONTYPE'],
    'OPEN',
    'HIGH',
    'LOW',
    'CLOSE',
    'SETTLE_PR',
    'VAL_INLAKH',
    'OPEN_INT',
    'TIMESTAMP',
  ],
  columns: {
    INSTRUMENT: 'finInstrmTp',
    SYMBOL: 'symbol',
    EXPIRY_DT: 'expiry',
    STRIKE_PR: 'strikePrice',
    OPTION_TYP: 'optionType',
    // In 2005.
    OPTIONTYPE: 'optionType',
    OPEN: 'openPrice',
    HIGH: 'highPrice',
    LOW: 'lowPrice',
    CLOSE: 'closePrice',
    SETTLE_PR: 'sttlmPric',
    CONTRACTS: 'ttq',
    VAL_INLAKH: 'ttlTrfVal',
    OPEN_INT: 'oi',
    CHG_IN_OI: 'oiChng',
    TIMESTAMP: 'tradDt',
  },
  // As the files since then have it.
  values: { finInstrmTp: { FUTIDX: 'IDF', OPTIDX: 'IDO', FUTSTK: 'STF', OPTSTK: 'STO' } },
  units: { ttlTrfVal: 'lakhs' },
  // Two decimals of a lakh.
  rounded: { ttlTrfVal: 1_000 },
});
