import { defineFileSet } from '../../declaration/operation.ts';
import { dealShape } from '../tables/deals.ts';

/** Assumed: that a list has each of its days in full, and that equal lines are different deals. */
export default defineFileSet({
  name: 'GetBulkDeals',
  title: 'Bulk deals',
  group: 'trading',
  summary: 'Bulk deals: trades of more than half a percent of a company',
  shapes: [dealShape('bulk_deals', 'Bulk deals')],
  days: 'sessions',
});
