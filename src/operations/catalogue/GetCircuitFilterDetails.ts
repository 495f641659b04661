import { defineBuiltIn } from '../built-in.ts';
import { date, int4, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { tradeDate } from './shared.ts';

const DERIVATIVES = 'Means nothing in the cash market.';
const meaningless = true;

const table = defineTable({
  name: 'circuit_filter_hits',
  comment: 'Securities of BSE that hit a circuit filter on a trading day; one may hit both.',
  key: ['exchange', 'trade_date', 'scrip_code', 'circuit_flag'],
  fields: [
    tradeDate,
    int4('ScripCode', 'scrip_code', 'Security code of the exchange.', { required: true }),
    text('CktFlag', 'circuit_flag', 'Which filter was hit, as sent; empty when left out.', { absent: '' }),
    text('ScripName', 'scrip_name', 'Name of the security.'),
    text('Product', 'product', 'Product as sent.'),
    text('InstrumentName', 'instrument_name', 'Name of the instrument kind.'),
    date('Expiry', 'expiry_date', `Expiry. ${DERIVATIVES}`, { meaningless }),
    numeric('StrikePrice', 'strike_price', `Strike price. ${DERIVATIVES}`, { unit: 'rupees', meaningless }),
    text('OptionType', 'option_type', `Call or put. ${DERIVATIVES}`, { meaningless }),
  ],
});

/**
 * Documented: the declared fields; no sample is printed, so this one is made from them. It does for BSE what
 * GetCircuitBreakers does for NSE. Assumed: that a request without instruments lists every hit of its days. The letters of
 * the flag are not listed: the glossary speaks of the lower limit, the page of both.
 */
export default defineBuiltIn({
  name: 'GetCircuitFilterDetails',
  title: 'Circuit filter hits',
  group: 'trading',
  summary: 'Securities that hit a circuit filter',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'many', dTFormat: true, options: [] },
  shapes: [{ table, has: ['Date', 'ScripCode'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:49', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
