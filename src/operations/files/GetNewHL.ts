import { date, numeric, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const table = defineTable({
  name: 'new_highs_lows',
  comment: 'Securities of NSE that reached a new high or low on a trading day. They have only a name.',
  key: ['exchange', 'trade_date', 'scrip_name', 'band'],
  fields: [
    date('Date', 'trade_date', 'Trading day.', { required: true }),
    text('ScripName', 'scrip_name', 'Name of the security.', { required: true }),
    text('NewBand', 'band', 'H a new high, L a new low; empty when left out.', { absent: '' }),
    numeric('New', 'new_price', 'The new highest or lowest price.', { unit: 'rupees' }),
    numeric('Prev', 'previous_price', 'The highest or lowest price before.', { unit: 'rupees' }),
  ],
});

/** Assumed: that names are unique, as there is neither a symbol nor a code, and that a day is listed in full. */
export default defineFileSet({
  name: 'GetNewHL',
  title: 'New highs and lows',
  group: 'trading',
  summary: 'Securities at a new high or low of 52 weeks',
  shapes: [{ table, has: ['ScripName', 'NewBand'], dated: true, fullSet: 'days' }],
  days: 'sessions',
});
