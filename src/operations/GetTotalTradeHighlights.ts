import { defineOperation } from '../declaration/define-operation.ts';
import { date, int8, numeric, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';

const table = defineTable({
  name: 'total_trade_highlights',
  comment: 'Summary of a day of trading: securities, trades, volume and turnover.',
  key: ['exchange', 'trade_date', 'trade_highlight'],
  fields: [
    date('date', 'trade_date', 'Trading day.', { required: true }),
    text('tradeHighlights', 'trade_highlight', 'Label of the row, e.g. Total; empty when left out.', {
      absent: '',
    }),
    int8('scripsNo', 'scrip_count', 'Number of securities traded.', { unit: 'securities' }),
    int8('tradesNo', 'trade_count', 'Number of trades.', { unit: 'trades' }),
    numeric('sharesVol', 'shares_volume_crore', 'Traded quantity.', { unit: 'crores of shares' }),
    numeric('turnoverRsCr', 'turnover_crore', 'Traded value.', { unit: 'crores of rupees' }),
  ],
});

export default defineOperation({
  name: 'GetTotalTradeHighlights',
  title: 'Market totals',
  group: 'trading',
  summary: 'Summary of total trade activity of each day',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['tradeHighlights'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:36', on: 'daily', hasLookback: true, order: 2 },
  emptyIsNormal: false,
});
