import { defineOperation } from '../declaration/define-operation.ts';
import { forBothNatures, natureOption, ratioFactShape, ratioShape } from './tables/financial-ratios.ts';

export default defineOperation({
  name: 'GetFinRatioSnapshot',
  title: 'Ratio snapshots',
  group: 'fundamentals',
  summary: 'Latest financial ratios with the current market price',
  exchanges: ['BSE'],
  request: { dates: 'none', instruments: 'one', dTFormat: false, options: [natureOption] },
  shapes: [ratioShape, ratioFactShape],
  windows: {
    per: 'instrument',
    days: 'none',
    // The operation takes no dates: its response is that of the day of the call, and a run requests once.
    requests: ({ today }) =>
      forBothNatures({ variant: '', from: today, to: today, params: { variant: 'snapshot' } }),
  },
  publishedAt: '22:00',
  schedule: { at: '23:00', on: 'saturday', hasLookback: false, order: 3 },
  emptyIsNormal: true,
});
