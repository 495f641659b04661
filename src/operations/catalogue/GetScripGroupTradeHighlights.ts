import { defineBuiltIn } from '../built-in.ts';
import { int8, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { tradeDate } from './shared.ts';

const table = defineTable({
  name: 'group_trade_highlights',
  comment: 'What was traded in each group of BSE on a trading day; the groups do not add up to the total.',
  key: ['exchange', 'trade_date', 'scrip_group'],
  fields: [
    tradeDate,
    text('ScripGroupCode', 'scrip_group', 'Group of the securities.', { required: true }),
    int8('ScripsNo', 'scrip_count', 'Number of securities traded.', { unit: 'securities' }),
    int8('TradesNo', 'trade_count', 'Number of trades.', { unit: 'trades' }),
    numeric('VolShares', 'shares_volume_crore', 'Traded quantity.', { unit: 'crores of shares' }),
    numeric('TurnoverRs', 'turnover_crore', 'Traded value.', { unit: 'crores of rupees' }),
    numeric('TotTurnoverPct', 'turnover_share_percent', "Share of the day's turnover of all groups.", {
      unit: 'percent',
    }),
  ],
});

/**
 * Documented: the fields. Assumed: the units, in which turnover and its share agree with GetTotalTradeHighlights of the
 * day (the glossary calls the share a change), and that `from` and `to` select by `Date`. Thirteen groups of the sample
 * do not add up to the total of the day.
 */
export default defineBuiltIn({
  name: 'GetScripGroupTradeHighlights',
  title: 'Totals by group',
  group: 'trading',
  summary: 'What was traded in each group',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['ScripGroupCode', 'VolShares'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:39', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
