import { defineBuiltIn } from '../built-in.ts';
import { int8, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { filter, tradeDate } from './shared.ts';

const ISSUES = { unit: 'securities' } as const;

const table = defineTable({
  name: 'group_advances_declines',
  comment: 'How many securities of each group of BSE rose and fell on a trading day.',
  key: ['exchange', 'trade_date', 'scrip_group'],
  fields: [
    tradeDate,
    text('ScripGroupCode', 'scrip_group', 'Group of the securities.', { required: true }),
    int8('IssuesTraded', 'issue_count', 'Securities traded: the sum of the other three.', ISSUES),
    int8('Advances', 'advance_count', 'Securities that closed higher than the session before.', ISSUES),
    int8('Declines', 'decline_count', 'Securities that closed lower.', ISSUES),
    int8('Unchanged', 'unchanged_count', 'Securities that closed at the same price.', ISSUES),
  ],
});

/**
 * Documented: the fields, and that `groups` narrows the response. Assumed: that `from` and `to` select by `Date`, and
 * that a response without `groups` has both groups, A and B, of each day.
 */
export default defineBuiltIn({
  name: 'GetStatisticsGroupAbCompanies',
  title: 'Advances and declines',
  group: 'trading',
  summary: 'Advances and declines of the groups A and B',
  exchanges: ['BSE'],
  request: {
    dates: 'range',
    instruments: 'none',
    dTFormat: true,
    options: [filter('groups', 'only these groups, joined with +, e.g. A+B')],
  },
  shapes: [{ table, has: ['ScripGroupCode', 'Advances'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:34', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
