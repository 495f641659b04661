import { defineBuiltIn } from '../built-in.ts';
import { int4, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { filter, STATEMENTS, YEAR } from './shared.ts';

const table = defineTable({
  name: 'financial_result_items',
  comment:
    'Which financial statements of companies the source has; market.financial_results has their facts.',
  key: ['exchange', 'symbol', 'year', 'nature_of_report', 'result_type', 'result_period'],
  fields: [
    text('Instrument', 'symbol', 'Ticker symbol.', {
      required: true,
      orElse: ['InstrumentIdentifier', 'Symbol'],
    }),
    int4('Year', 'year', 'Financial year, by its first calendar year.', { required: true }),
    text('NatureOfReport', 'nature_of_report', 'Standalone or Consolidated.', { required: true }),
    text('ResultsType', 'result_type', 'Kind of statement, e.g. ProfitLoss.', { required: true }),
    text('ResultPeriod', 'result_period', 'Code of the quarter or period, e.g. QD, M9.', {
      required: true,
    }),
  ],
});

const lastYears = (today: string) => [-1, 0].map((by) => ({ Year: String(Number(today.slice(0, 4)) + by) }));

/**
 * Documented: the fields, `Year` with a capital letter, and that the current year is meant without it. Assumed: that a
 * request without instruments lists all companies of the year. There are no days: a nightly run requests the year of
 * the day and the one before, whose last statements still come; others are requested by the option.
 */
export default defineBuiltIn({
  name: 'GetFinancialResultsItems',
  title: 'List of financial statements',
  group: 'fundamentals',
  summary: 'Which financial statements there are',
  exchanges: ['BSE'],
  request: {
    dates: 'none',
    instruments: 'many',
    dTFormat: false,
    options: [
      {
        param: 'Year',
        meaning: 'the financial year, by its first calendar year; this one and the last when not given',
        form: YEAR,
        isFilter: false,
      },
      filter('natureOfReports', 'only these kinds of reports, joined with +', STATEMENTS.natures),
      filter('types', 'only these kinds of statements, joined with +', STATEMENTS.types),
      filter('periods', 'only these periods, joined with +', STATEMENTS.periods),
    ],
  },
  shapes: [
    {
      table,
      has: ['Year', 'ResultsType'],
      hasOneOf: ['Instrument', 'InstrumentIdentifier', 'Symbol'],
      symbolColumn: 'symbol',
      dated: false,
      fullSet: 'none',
    },
  ],
  windows: { per: 'once', requests: lastYears },
  schedule: { at: '22:16', on: 'daily', hasLookback: false },
  emptyIsNormal: true,
});
