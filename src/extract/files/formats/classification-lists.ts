import { UNKNOWN_DAY } from '../../../core/days.ts';
import { defineFormat } from '../file-format.ts';

/** Lists of companies do not say since when a classification holds: only their names may have a day. */
const classified = {
  dataSet: 'GetSectoralClassification',
  byTradingDay: false,
  day: { field: 'allotedFrom', otherwise: UNKNOWN_DAY },
} as const;

/** The levels, as lists name them that have all. */
const LEVELS = {
  'MACRO ECONOMIC SECTOR': 'macroEconomicIndicator',
  SECTOR: 'sector',
  INDUSTRY: 'industry',
  'BASIC INDUSTRY': 'basicIndustry',
} as const;

export default [
  // What it calls industry is the sector of the classification.
  defineFormat({
    ...classified,
    name: 'nse-constituents',
    files: ['ind_nifty500list.csv', 'ind_nifty500list_DDMMYYYY.csv'],
    exchange: 'NSE',
    marks: ['COMPANY NAME', 'INDUSTRY', 'SYMBOL', 'ISIN CODE'],
    columns: {
      'COMPANY NAME': 'companyName',
      INDUSTRY: 'sector',
      SYMBOL: 'symbol',
      'ISIN CODE': 'isin',
    },
  }),
  defineFormat({
    ...classified,
    name: 'bse-scrips',
    files: ['ListOfScrips.csv', 'ListOfScrips_DDMMYYYY.csv'],
    exchange: 'BSE',
    marks: ['SECURITY CODE', 'SECURITY ID', 'ISIN NO', 'INDUSTRY'],
    columns: {
      'SECURITY CODE': 'scripCode',
      'SECURITY ID': 'symbol',
      // Newer lists have the short name beside it.
      'ISSUER NAME': 'companyName',
      'SECURITY NAME': 'companyName',
      'ISIN NO': 'isin',
      // The levels as newer lists name them; older ones have the industry alone.
      'SECTOR NAME': 'macroEconomicIndicator',
      'INDUSTRY NEW NAME': 'sector',
      'IGROUP NAME': 'industry',
      'ISUBGROUP NAME': 'basicIndustry',
      INDUSTRY: 'industry',
    },
    // Delisted ones have none.
    values: { isin: { NA: '' } },
    // It is written as in HTML.
    adapt(record) {
      for (const [field, text] of Object.entries(record))
        record[field] = text?.replaceAll('&amp;', '&') ?? null;
    },
  }),
  defineFormat({
    name: 'nse-industries',
    files: ['nse_industry_classification.csv'],
    dataSet: 'IndustryClassification',
    exchange: 'NSE',
    byTradingDay: false,
    marks: ['BASIC_IND_CODE', 'BASIC INDUSTRY'],
    columns: {
      ...LEVELS,
      MES_CODE: 'meiCode',
      SECT_CODE: 'sectCode',
      IND_CODE: 'industryCode',
      BASIC_IND_CODE: 'basicIndustryCode',
    },
  }),
];
