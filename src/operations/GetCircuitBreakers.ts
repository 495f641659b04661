import { defineOperation } from '../declaration/define-operation.ts';
import { date, symbolOf, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';

const table = defineTable({
  name: 'circuit_breakers',
  comment: 'Securities that hit a price band on a day; one may hit both bands.',
  key: ['exchange', 'trade_date', 'scrip_id', 'series', 'band'],
  fields: [
    date('date', 'trade_date', 'Trading day.', { required: true }),
    text('scripId', 'scrip_id', 'Security id as sent; may carry a series suffix after a dot.', {
      required: true,
    }),
    text('series', 'series', 'Series the security trades in; empty when left out.', { absent: '' }),
    text('band', 'band', 'Band that was hit: H upper, L lower; empty when left out.', { absent: '' }),
    symbolOf('scripId', 'series'),
    text('scripName', 'scrip_name', 'Name of the security.'),
  ],
});

export default defineOperation({
  name: 'GetCircuitBreakers',
  title: 'Price bands hit',
  group: 'trading',
  summary: 'Securities at a price band',
  exchanges: ['NSE'],
  request: {
    dates: 'day',
    instruments: 'none',
    dTFormat: true,
    options: [
      { param: 'band', meaning: 'only this band: H upper, L lower', values: ['H', 'L'], isFilter: true },
    ],
  },
  shapes: [{ table, has: ['scripId'], dated: true, fullSet: 'days' }],
  windows: { per: 'session' },
  schedule: { at: '21:30', on: 'daily', hasLookback: true, order: 2 },
  emptyIsNormal: true,
});
