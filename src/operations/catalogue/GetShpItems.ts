import { defineBuiltIn } from '../built-in.ts';
import { date, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { filter } from './shared.ts';

const table = defineTable({
  name: 'shareholding_items',
  comment:
    'Which companies filed a shareholding pattern on a day; market.shareholding_facts has the patterns.',
  key: ['exchange', 'filing_date', 'symbol'],
  fields: [
    date('Date', 'filing_date', 'Day of the filing.', { required: true }),
    text('Instrument', 'symbol', 'Ticker symbol.', {
      required: true,
      orElse: ['InstrumentIdentifier', 'Symbol'],
    }),
  ],
});

/**
 * Documented: the fields, that both days are required, and that they may be five days apart without instruments. Assumed:
 * that they select by `Date`, as in the sample, and that a day is listed in full. Days come in seconds or milliseconds,
 * by format.
 */
export default defineBuiltIn({
  name: 'GetShpItems',
  title: 'Shareholding filings',
  group: 'ownership',
  summary: 'Who filed a shareholding pattern, and when',
  exchanges: ['BSE'],
  request: {
    dates: 'range',
    instruments: 'many',
    dTFormat: true,
    options: [filter('period', 'only patterns of this month, e.g. February 2025')],
  },
  shapes: [
    {
      table,
      has: ['Date'],
      hasOneOf: ['Instrument', 'InstrumentIdentifier', 'Symbol'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  windows: { per: 'range', days: 5, everyDay: true },
  schedule: { at: '22:20', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
