import { derived, fromRequest, int4, numeric, type Requested, text } from '../../declaration/fields.ts';
import type { InstrumentRequest, Shape } from '../../declaration/operation.ts';
import { defineShape, defineTable } from '../../declaration/table.ts';

/**
 * The responses of the ratio operations contain neither instrument nor date, so the whole key comes from the request.
 */
const KEY = ['exchange', 'symbol', 'nature_of_report', 'variant', 'as_of_date', 'period'] as const;

/** The requested variant, which planning writes into the window's params. */
function readVariant(requested: Requested): string {
  return requested.params.variant ?? 'snapshot';
}

const keyFields = [
  fromRequest('symbol', 'text', 'Instrument requested.', (requested) => requested.instruments[0] ?? ''),
  fromRequest(
    'nature_of_report',
    'text',
    'Standalone or Consolidated figures.',
    (requested) => requested.params.natureOfReport ?? 'Standalone',
  ),
  fromRequest('variant', 'text', 'eod, realtime, quarter or snapshot.', readVariant),
  fromRequest(
    'as_of_date',
    'date',
    'Day requested; the day of the call for realtime and snapshot; the last day of the quarter.',
    (requested) =>
      ['realtime', 'snapshot'].includes(readVariant(requested)) ? requested.calledOn : requested.to,
  ),
  fromRequest(
    'period',
    'text',
    'Financial year (by its first calendar year) and quarter code, e.g. 2024QM; empty where none applies.',
    (requested) => `${requested.params.year ?? ''}${requested.params.period ?? ''}`,
  ),
];

const ratios = defineTable({
  name: 'financial_ratios',
  comment:
    'Financial ratios of a company: end of day, real time, snapshot and quarterly. Values are stored as sent, however absurd.',
  key: KEY,
  fields: [
    ...keyFields,
    int4('year', 'year', 'Financial year of the latest figures.'),
    text('lastQ', 'last_q', 'Code of the latest quarter, e.g. QM (to March).'),
    numeric('marketCap', 'market_cap_crore', 'Market capitalisation.', { unit: 'crores of rupees' }),
    numeric('eodClosePrice', 'eod_close_price', 'Closing price of the day.', { unit: 'rupees' }),
    numeric('currentPrice', 'current_price', 'Current market price.', { unit: 'rupees' }),
    numeric('stockPrice', 'stock_price', 'Stock price, where the response names one.', { unit: 'rupees' }),
    numeric('week52High', 'week52_high_price', 'Highest price of 52 weeks.', { unit: 'rupees' }),
    numeric('week52Low', 'week52_low_price', 'Lowest price of 52 weeks.', { unit: 'rupees' }),
    numeric('eps', 'eps', 'Earnings per share.', { unit: 'rupees' }),
    numeric('peRatio', 'pe_ratio', 'Price to earnings.', { unit: 'ratio' }),
    numeric('bookValuePerShare', 'book_value_per_share', 'Book value per share.', { unit: 'rupees' }),
    numeric('dividendYield', 'dividend_yield', 'Dividend yield, as sent.', { unit: 'as sent' }),
    numeric('ebit', 'ebit', 'Earnings before interest and tax.', { unit: 'rupees' }),
    numeric('interestCoverageRatio', 'interest_coverage_ratio', 'EBIT to interest.', { unit: 'ratio' }),
    numeric('faceValue', 'face_value', 'Face value of the share.', { unit: 'rupees' }),
    numeric('priceSalesRatio', 'price_sales_ratio', 'Price to sales.', { unit: 'ratio' }),
    numeric('profitAfterTax', 'profit_after_tax', 'Profit after tax.', { unit: 'rupees' }),
    numeric('enterpriseValue', 'enterprise_value', 'Enterprise value.', { unit: 'rupees' }),
    numeric('debt', 'debt', 'Debt.', { unit: 'rupees' }),
  ],
});

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i;

const facts = defineTable({
  name: 'financial_ratio_facts',
  comment: 'Financial ratios as generic facts: the response shape that the three ratio operations declare.',
  key: [...KEY, 'fact_key', 'unit_id'],
  fields: [
    ...keyFields,
    text('key', 'fact_key', 'Key of the fact; its label where the source sends no key.', {
      required: true,
      orElse: ['label'],
    }),
    text('label', 'label', 'Label of the fact.'),
    text('unitId', 'unit_id', 'Unit of the value; empty when left out.', { absent: '' }),
    int4('decimals', 'decimals', 'Decimals the value is stated with.'),
    text('value', 'value', 'Value as sent.'),
    derived('value_number', 'numeric', 'The value where it reads as a number, else null.', (get) => {
      const value = get('value');
      if (typeof value === 'number') return value;
      return typeof value === 'string' && NUMBER.test(value.trim()) ? value.trim() : null;
    }),
    text('description', 'description', 'Description of the fact.'),
  ],
});

/** The codes of quarters, in their order within the financial year. */
export const QUARTERS: readonly string[] = ['QJ', 'QS', 'QD', 'QM'];

/**
 * Ratios of another quarter than was requested. A request for another period, such as `Latest`, or for a day may get the
 * figures of any quarter.
 */
const otherQuarter: Shape<typeof ratios>['contradiction'] = ({ year, last_q: lastQ }, { params }) => {
  const { year: requestedYear = '', period = '' } = params;
  if (params.variant !== 'quarter' || !QUARTERS.includes(period)) return null;
  const message = (value: unknown) => `is ${String(value)}, but ${requestedYear}${period} was requested`;
  const code = lastQ?.toUpperCase() ?? '';
  if (QUARTERS.includes(code) && code !== period) return { column: 'last_q', message: message(lastQ) };
  const isOther = requestedYear !== '' && Number(year ?? 0) !== 0 && Number(year) !== Number(requestedYear);
  return isOther ? { column: 'year', message: message(year) } : null;
};

export const ratioShape = defineShape({
  table: ratios,
  has: [],
  hasOneOf: ratios.fields.flatMap((field) => (field.from === 'response' ? [field.source] : [])),
  dated: false,
  contradiction: otherQuarter,
  fullSet: 'none',
});

export const ratioFactShape = defineShape({
  table: facts,
  has: [],
  hasOneOf: ['label', 'key'],
  dated: false,
  fullSet: 'none',
});

const NATURES = ['Standalone', 'Consolidated'] as const;

/** The request once for each nature of report. */
export function forBothNatures(
  request: InstrumentRequest & { readonly params: { readonly variant: string } },
): InstrumentRequest[] {
  return NATURES.map((natureOfReport) => ({
    ...request,
    variant: `${request.params.variant}/${natureOfReport}`,
    params: { ...request.params, natureOfReport },
  }));
}

/** The request option shared by the three ratio operations. */
export const natureOption = {
  param: 'natureOfReport',
  meaning: 'only Standalone or only Consolidated figures; both when not given',
  values: NATURES,
  isClosed: true,
  isFilter: false,
} as const;
