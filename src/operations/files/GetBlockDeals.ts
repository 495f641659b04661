import { defineFileSet } from '../../declaration/operation.ts';
import { dealShape } from '../tables/deals.ts';

/** Assumed: what is assumed of GetBulkDeals. Exchanges publish no list on a day without block deals. */
export default defineFileSet({
  name: 'GetBlockDeals',
  title: 'Block deals',
  group: 'trading',
  summary: 'Block deals: large trades in a window of their own',
  shapes: [dealShape('block_deals', 'Block deals')],
  days: 'some sessions',
});
