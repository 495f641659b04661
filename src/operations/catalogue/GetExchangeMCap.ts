import { defineBuiltIn } from '../built-in.ts';
import { numeric } from '../fields.ts';
import { defineTable } from '../table.ts';
import { tradeDate } from './shared.ts';

const table = defineTable({
  name: 'exchange_market_caps',
  comment: 'Market capitalisation of all companies of an exchange, one row a trading day.',
  key: ['exchange', 'trade_date'],
  fields: [
    tradeDate,
    numeric('MarketCapVal', 'market_cap_crore', 'Market capitalisation of the whole exchange.', {
      orElse: ['MarketCap'],
      unit: 'crores of rupees',
    }),
  ],
});

/**
 * Documented: the fields of the sample (none are declared), and `date`, of which any second of the day will do. Assumed:
 * the unit, which follows from the size of the market. Both times of the source are days here, the second one the day
 * after.
 */
export default defineBuiltIn({
  name: 'GetExchangeMCap',
  title: 'Exchange market capitalisation',
  group: 'fundamentals',
  summary: 'Market capitalisation of the whole exchange',
  exchanges: ['BSE'],
  request: { dates: 'day', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['Date', 'MarketCapVal'], dated: true, fullSet: 'days' }],
  windows: { per: 'session' },
  schedule: { at: '21:28', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
