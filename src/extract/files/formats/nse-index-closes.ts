import { defineFormat } from '../file-format.ts';

/** What NSE calls its indices since November 2015, and what it called them before: the code of an index stays the same. */
const FORMER_NAMES: Readonly<Record<string, readonly string[]>> = {
  'Nifty 50': ['S&P CNX Nifty', 'CNX Nifty', 'Nifty'],
  'Nifty Next 50': ['CNX Nifty Junior'],
  'Nifty 100': ['CNX 100'],
  'Nifty 200': ['CNX 200'],
  'Nifty 500': ['S&P CNX 500', 'CNX 500'],
  'Nifty Midcap 100': ['CNX Midcap'],
  'Nifty Smallcap 100': ['CNX Smallcap'],
  'Nifty Auto': ['CNX Auto'],
  'Nifty Bank': ['Bank Nifty', 'CNX Bank'],
  'Nifty Commodities': ['CNX Commodities'],
  'Nifty CPSE': ['CPSE', 'CPSE Index'],
  'Nifty Dividend Opportunities 50': ['CNX Dividend Opportunities'],
  'Nifty Energy': ['CNX Energy'],
  'Nifty Financial Services': ['CNX Finance'],
  'Nifty FMCG': ['CNX FMCG'],
  'Nifty India Consumption': ['CNX Consumption'],
  'Nifty Infrastructure': ['CNX Infrastructure'],
  'Nifty IT': ['CNX IT'],
  'Nifty Media': ['CNX Media'],
  'Nifty Metal': ['CNX Metal'],
  'Nifty MNC': ['CNX MNC'],
  'Nifty Pharma': ['CNX Pharma'],
  'Nifty PSE': ['CNX PSE'],
  'Nifty PSU Bank': ['CNX PSU Bank'],
  'Nifty Realty': ['CNX Realty'],
  'Nifty Services Sector': ['CNX Service', 'CNX Service Sector'],
};

/** Also in any case: NIFTY Midcap 100 and Nifty Midcap 100. */
const CODES = Object.fromEntries(
  Object.entries(FORMER_NAMES).flatMap(([code, former]) =>
    [code, ...former].map((name) => [name.toUpperCase(), code] as const),
  ),
);

/** Closing values of NSE's indices. */
export default defineFormat({
  name: 'nse-index-closes',
  files: ['ind_close_all_DDMMYYYY.csv'],
  dataSet: 'GetIndexDetail',
  exchange: 'NSE_IDX',
  // From June 2014 to June 2015.
  hasSlashes: true,
  marks: ['Index Name', 'Index Date', 'Closing Index Value'],
  columns: {
    'Index Name': ['IndexCode', 'IndexName'],
    'Index Date': 'Date',
    'Open Index Value': 'Opening',
    'High Index Value': 'High',
    'Low Index Value': 'Low',
    'Closing Index Value': 'Closing',
    'Points Change': 'Change',
    'Change(%)': 'PerChange',
    Volume: 'Volume',
    'Turnover (Rs. Cr.)': 'Turnover',
    'P/E': 'PE',
    'P/B': 'PB',
    'Div Yield': 'DivYield',
  },
  values: { IndexCode: CODES },
  units: { Turnover: 'crores' },
  // Two decimals of a crore.
  rounded: { Turnover: 100_000 },
});
