import { UNKNOWN_DAY } from '../core/days.ts';
import { defineOperation } from '../declaration/define-operation.ts';
import { date, int4, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';

const table = defineTable({
  name: 'sectoral_classification',
  comment:
    'Sector, industry and basic industry of each company. Codes are hierarchical: each extends the one above.',
  key: ['exchange', 'isin', 'scrip_code', 'allotted_from'],
  names: [
    {
      symbol: 'symbol',
      isin: 'isin',
      scripCode: 'scrip_code',
      name: 'company_name',
      // A classification may be valid for years, but its symbol is that of the day on which the source saved it.
      day: ['source_saved_at', 'allotted_from'],
    },
  ],
  fields: [
    text('isin', 'isin', 'International Securities Identification Number; empty when left out.', {
      absent: '',
    }),
    int4('scripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    date(
      'allotedFrom',
      'allotted_from',
      `Day from which the classification holds; ${UNKNOWN_DAY} in imported lists that do not say it.`,
      { required: true },
    ),
    text('symbol', 'symbol', 'Ticker symbol.'),
    text('companyName', 'company_name', 'Name of the company.'),
    text('meiCode', 'macro_sector_code', 'Code of the macro-economic sector.'),
    text('macroEconomicIndicator', 'macro_sector', 'Macro-economic sector.'),
    text('sectCode', 'sector_code', 'Code of the sector; extends the macro-economic sector code.'),
    text('sector', 'sector', 'Sector.'),
    text('industryCode', 'industry_code', 'Code of the industry; extends the sector code.'),
    text('industry', 'industry', 'Industry.'),
    text(
      'basicIndustryCode',
      'basic_industry_code',
      'Code of the basic industry; extends the industry code.',
    ),
    text('basicIndustry', 'basic_industry', 'Basic industry.'),
  ],
});

/** The sectors of the exchanges' common classification (NSE, July 2023). */
const SECTORS = [
  'Automobile and Auto Components',
  'Capital Goods',
  'Chemicals',
  'Construction',
  'Construction Materials',
  'Consumer Durables',
  'Consumer Services',
  'Diversified',
  'Fast Moving Consumer Goods',
  'Financial Services',
  'Forest Materials',
  'Healthcare',
  'Information Technology',
  'Media, Entertainment & Publication',
  'Metals & Mining',
  'Oil, Gas & Consumable Fuels',
  'Power',
  'Realty',
  'Services',
  'Telecommunication',
  'Textiles',
  'Utilities',
] as const;

/** The request options of which one is enough for a response; then the days would only narrow it. */
const FILTERS = ['sector', 'industry', 'basicIndustry'] as const;

export default defineOperation({
  name: 'GetSectoralClassification',
  title: 'Sectoral classification',
  group: 'reference',
  summary: 'Sectoral classification of companies',
  exchanges: ['BSE', 'NSE'],
  request: {
    // The service refuses a request without any filter. What from and to select is not known: perhaps only companies
    // whose classification has changed.
    dates: 'range',
    datedWhen: ({ params, instruments }) =>
      instruments.length === 0 && FILTERS.every((filter) => params[filter] === undefined),
    instruments: 'many',
    dTFormat: true,
    options: [
      { param: 'sector', meaning: 'only companies of this sector', isFilter: true },
      { param: 'industry', meaning: 'only companies of this industry', isFilter: true },
      { param: 'basicIndustry', meaning: 'only companies of this basic industry', isFilter: true },
    ],
  },
  shapes: [
    {
      table,
      has: ['allotedFrom'],
      hasOneOf: ['isin', 'scripCode'],
      namedBy: ['isin', 'scripCode'],
      symbolColumn: 'symbol',
      dated: false,
      // No response lists all companies, and one that has left a sector is in the response about another: nothing is
      // withdrawn.
      fullSet: 'none',
    },
  ],
  windows: {
    per: 'range',
    days: 30,
    everyDay: true,
    parts: { param: 'sector', values: SECTORS, column: 'sector' },
  },
  schedule: { at: '21:45', on: 'saturday', hasLookback: false, order: 2 },
  emptyIsNormal: true,
});
