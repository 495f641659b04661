import { defineBuiltIn } from '../built-in.ts';
import { numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { closePrice, previousClosePrice, tickerIn, tradeDate } from './shared.ts';

const FRACTION = { unit: 'fraction' } as const;

const table = defineTable({
  name: 'volatilities',
  comment: 'Daily and annual volatility of each security of NSE on each trading day.',
  key: ['exchange', 'trade_date', 'scrip_id'],
  fields: [
    tradeDate,
    text('ScripId', 'scrip_id', 'Security id as sent; may carry a series suffix after a dot.', {
      required: true,
      orElse: ['Symbol'],
    }),
    tickerIn(['ScripId', 'Symbol']),
    text('ScripName', 'scrip_name', 'Name of the security; empty in the published sample.'),
    closePrice('Close'),
    previousClosePrice('PrevClose'),
    numeric('UnderlyingLogReturn', 'log_return', 'Logarithm of close ÷ previous close.', FRACTION),
    numeric('PrevVolatility', 'previous_volatility', 'Daily volatility of the session before.', {
      ...FRACTION,
      orElse: ['PrevVolatality'],
    }),
    numeric('Volatity', 'volatility', 'Daily volatility.', {
      ...FRACTION,
      orElse: ['Volatility', 'Volatality'],
    }),
    numeric('AnnualVolatality', 'annual_volatility', 'Daily volatility times the root of 365.', {
      ...FRACTION,
      orElse: ['AnnualVolatility'],
    }),
  ],
});

/**
 * Documented: the fields of the sample (none are declared), three of them misspelled, and the parameter `dTformat`.
 * Assumed: that a request without an instrument lists every security of the day, and that the figures are fractions, not
 * percentages, which agrees with the prices of the sample.
 */
export default defineBuiltIn({
  name: 'GetVolatality',
  title: 'Volatilities',
  group: 'prices',
  summary: 'Daily and annual volatility of each security',
  exchanges: ['NSE'],
  request: { dates: 'day', instruments: 'one', dTFormat: 'dTformat', options: [] },
  shapes: [
    {
      table,
      has: ['Date'],
      hasOneOf: ['ScripId', 'Symbol'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  windows: { per: 'session' },
  schedule: { at: '21:46', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
