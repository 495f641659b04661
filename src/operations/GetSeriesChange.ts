import { defineOperation } from '../declaration/define-operation.ts';
import { date, symbolOf, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';

const table = defineTable({
  name: 'series_changes',
  comment: 'Moves of a security from one trading series to another.',
  key: ['exchange', 'change_date', 'scrip_id', 'prev_series', 'to_series'],
  names: [
    { symbol: 'symbol', series: 'prev_series', name: 'scrip_name', day: ['change_date'], dayBefore: true },
    { symbol: 'symbol', series: 'to_series', name: 'scrip_name', day: ['change_date'] },
  ],
  fields: [
    date('changeDate', 'change_date', 'Day from which the new series holds.', { required: true }),
    text('scripId', 'scrip_id', 'Security id as sent; may carry its old series as a suffix after a dot.', {
      required: true,
    }),
    text('prevSeries', 'prev_series', 'Series before; empty when left out.', { absent: '' }),
    text('toSeries', 'to_series', 'Series after; empty when left out.', { absent: '' }),
    symbolOf('scripId', 'prevSeries'),
    text('scripName', 'scrip_name', 'Name of the security.'),
  ],
});

export default defineOperation({
  name: 'GetSeriesChange',
  title: 'Series changes',
  group: 'reference',
  summary: 'Moves of securities between trading series',
  exchanges: ['NSE'],
  request: { dates: 'range', instruments: 'one', dTFormat: true, options: [] },
  shapes: [{ table, has: ['changeDate', 'scripId'], symbolColumn: 'symbol', dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: true },
  schedule: { at: '21:42', on: 'daily', hasLookback: true, order: 2 },
  emptyIsNormal: true,
});
