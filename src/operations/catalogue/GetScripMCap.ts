import { defineBuiltIn } from '../built-in.ts';
import { int4, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { tradeDate } from './shared.ts';

const table = defineTable({
  name: 'scrip_market_caps',
  comment: 'Market capitalisation of each security on each trading day, with its code and ISIN.',
  key: ['exchange', 'symbol', 'scrip_code', 'trade_date'],
  fields: [
    text('Symbol', 'symbol', 'Ticker symbol; empty when left out.', { absent: '', orElse: ['ScripId'] }),
    int4('ScripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    tradeDate,
    text('ScripName', 'scrip_name', 'Name of the security.'),
    text('ISIN', 'isin', 'International Securities Identification Number.'),
    numeric('MarketCap', 'market_cap_crore', 'Market capitalisation.', { unit: 'crores of rupees' }),
  ],
});

/**
 * Documented: the fields and that the instrument and the days may be left out. Assumed: that `from` and `to` select by
 * `Date`, that a request without an instrument lists every security of the day, and the unit, which follows from the
 * size of the company in the sample.
 */
export default defineBuiltIn({
  name: 'GetScripMCap',
  title: 'Market capitalisation',
  group: 'fundamentals',
  summary: 'Market capitalisation of each security',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'one', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: ['Date', 'MarketCap'],
      namedBy: ['Symbol', 'ScripId', 'ScripCode'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  // One session a request: a day has thousands of securities.
  windows: { per: 'session' },
  schedule: { at: '21:26', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
