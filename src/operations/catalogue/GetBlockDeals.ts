import { defineBuiltIn } from '../built-in.ts';
import { BULK_DEAL_SPANS, dealShape } from './deals.ts';

/**
 * Documented: the fields of the sample (none are declared) and the named spans. The sample has names of companies in
 * `ScripId`, and deals that came six days late: they are requested again for as long as the lookback reaches. Assumed:
 * what is assumed of GetBulkDeals; `QtyPct` 0 for a large deal may mean that it is not known.
 */
export default defineBuiltIn({
  name: 'GetBlockDeals',
  title: 'Block deals',
  group: 'trading',
  summary: 'Block deals: large trades in a window of their own',
  exchanges: ['BSE', 'NSE'],
  request: { dates: 'spans', spans: BULK_DEAL_SPANS, instruments: 'one', dTFormat: true, options: [] },
  shapes: [dealShape('block_deals', 'Block deals')],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:22', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
  filesSkipDays: true,
});
