import { defineBuiltIn } from '../built-in.ts';
import { BULK_DEAL_SPANS, dealShape } from './deals.ts';

/**
 * Documented: the fields, the named spans and that a request without an instrument may go back 30 days. Assumed: that a
 * response lists each of its days in full, that a span ends with today (deals of the trial day are in the sample), that
 * `QtyPct` is in percent of the shares issued, and that equal lines are different deals. Whether NSE has scrip codes is
 * not shown.
 */
export default defineBuiltIn({
  name: 'GetBulkDeals',
  title: 'Bulk deals',
  group: 'trading',
  summary: 'Bulk deals: trades of more than half a percent of a company',
  exchanges: ['BSE', 'NSE'],
  request: { dates: 'spans', spans: BULK_DEAL_SPANS, instruments: 'one', dTFormat: true, options: [] },
  shapes: [dealShape('bulk_deals', 'Bulk deals')],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:20', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
