import { defineBuiltIn } from '../built-in.ts';
import { text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { publishedAt, tradeDate } from './shared.ts';

const table = defineTable({
  name: 'banned_securities',
  comment: 'Securities in which no new derivative positions may be opened on a trading day.',
  key: ['exchange', 'trade_date', 'symbol'],
  fields: [
    tradeDate,
    text('Symbol', 'symbol', 'Ticker symbol of the underlying.', { required: true, orElse: ['ScripId'] }),
    publishedAt,
  ],
});

/**
 * Documented: the fields of the sample (none are declared). Assumed: that the ban is the one of the derivatives market,
 * that `from` and `to` select by the moment in `Date` (08:45 of the day itself, so only whole days find it), and that the
 * list of a day is complete.
 */
export default defineBuiltIn({
  name: 'GetBannedSecurities',
  title: 'Banned securities',
  group: 'trading',
  summary: 'Securities under a trading ban',
  exchanges: ['NSE'],
  request: { dates: 'range', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['Date'], hasOneOf: ['Symbol', 'ScripId'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  publishedAt: '09:00',
  schedule: { at: '21:44', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
