import { defineBuiltIn } from '../built-in.ts';
import { numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { tradeDate } from './shared.ts';

const POINTS = { unit: 'points' } as const;

const table = defineTable({
  name: 'index_highlights',
  comment: 'Values of the key indices of an exchange, one row an index and trading day.',
  key: ['exchange', 'trade_date', 'index_name'],
  fields: [
    tradeDate,
    text('IndexName', 'index_name', 'Name of the index.', { required: true }),
    numeric('PrevClose', 'previous_close_value', 'Last value of the session before.', POINTS),
    numeric('Opening', 'open_value', 'First value of the day.', POINTS),
    numeric('High', 'high_value', 'Highest value of the day.', POINTS),
    numeric('Low', 'low_value', 'Lowest value of the day.', POINTS),
    numeric('Closing', 'close_value', 'Last value of the day.', POINTS),
    numeric('PrevCloseChangePts', 'value_change', 'Change against the session before.', POINTS),
    numeric('PrevCloseChangePct', 'change_percent', 'Change against the session before.', {
      unit: 'percent',
    }),
  ],
});

/**
 * Documented: the declared fields; no sample is printed, so this one is made from them. The exchange is BSE here, and
 * BSE_IDX in GetIndexDetail. Assumed: that `from` and `to` select by `Date`, and that a day is listed in full, as in the
 * sister operations of the same page.
 */
export default defineBuiltIn({
  name: 'GetIndexHighlights',
  title: 'Key indices',
  group: 'prices',
  summary: 'Values of the key indices of each day',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['Date', 'IndexName'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:40', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
