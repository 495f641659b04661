import { defineOperation } from '../declaration/define-operation.ts';
import { forBothNatures, natureOption, ratioFactShape, ratioShape } from './tables/financial-ratios.ts';

export default defineOperation({
  name: 'GetFinRatioEOD',
  title: 'Daily ratios',
  group: 'fundamentals',
  summary: 'Financial ratios on a given day',
  exchanges: ['BSE'],
  request: { dates: 'day', instruments: 'one', dTFormat: false, options: [natureOption] },
  shapes: [ratioShape, ratioFactShape],
  windows: {
    per: 'instrument',
    days: 'sessions',
    requests: ({ tradingDays }) =>
      tradingDays.flatMap((day) =>
        forBothNatures({ variant: '', from: day, to: day, params: { variant: 'eod' } }),
      ),
  },
  publishedAt: '22:00',
  schedule: { at: '22:10', on: 'daily', hasLookback: false, order: 3 },
  emptyIsNormal: true,
});
