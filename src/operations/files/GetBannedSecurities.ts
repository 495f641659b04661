import { date, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const table = defineTable({
  name: 'banned_securities',
  comment: 'Securities in which no new derivative positions may be opened on a trading day.',
  key: ['exchange', 'trade_date', 'symbol'],
  fields: [
    date('Date', 'trade_date', 'Trading day.', { required: true }),
    text('Symbol', 'symbol', 'Ticker symbol of the underlying.', { required: true }),
  ],
});

export default defineFileSet({
  name: 'GetBannedSecurities',
  title: 'Banned securities',
  group: 'trading',
  summary: 'Securities under a trading ban',
  shapes: [{ table, has: ['Date', 'Symbol'], dated: true, fullSet: 'days' }],
  days: 'sessions',
});
