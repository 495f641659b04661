import { defineBuiltIn } from '../built-in.ts';
import { numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { tradeDate } from './shared.ts';

const table = defineTable({
  name: 'new_highs_lows',
  comment: 'Securities of NSE that reached a new high or low on a trading day. They have only a name.',
  key: ['exchange', 'trade_date', 'scrip_name', 'band'],
  fields: [
    tradeDate,
    text('ScripName', 'scrip_name', 'Name of the security.', { required: true }),
    text('NewBand', 'band', 'H a new high, L a new low; empty when left out.', { absent: '' }),
    numeric('New', 'new_price', 'The new highest or lowest price.', { unit: 'rupees' }),
    numeric('Prev', 'previous_price', 'The highest or lowest price before.', { unit: 'rupees' }),
  ],
});

/**
 * Documented: the fields of the sample (none are declared). Assumed: the key (there is neither a symbol nor a code, and
 * names may not be unique; bonds and treasury bills are among them), and that a day is listed in full. Of which period
 * the highs and lows are is not stated.
 */
export default defineBuiltIn({
  name: 'GetNewHL',
  title: 'New highs and lows',
  group: 'trading',
  summary: 'Securities at a new high or low',
  exchanges: ['NSE'],
  request: { dates: 'day', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['ScripName', 'NewBand'], dated: true, fullSet: 'days' }],
  windows: { per: 'session' },
  schedule: { at: '21:50', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
