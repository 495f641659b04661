import { defineOperation } from './operation.ts';
import {
  forBothNatures,
  natureOption,
  RATIO_SAMPLE,
  ratioFactShape,
  ratioShape,
} from './tables/financial-ratios.ts';

const { EODClosePrice: CurrentPrice, ...rest } = RATIO_SAMPLE;

export default defineOperation({
  name: 'GetFinRatioSnapshot',
  summary: 'Latest financial ratios with the current market price',
  exchanges: ['BSE'],
  request: { dates: 'none', instruments: 'one', dTFormat: false, options: [natureOption] },
  instead: { operation: 'GetFinancialRatios', params: { type: 'Realtime' } },
  shapes: [ratioFactShape, ratioShape],
  windows: {
    per: 'instrument',
    days: 'none',
    // The operation takes no dates: its answer is that of the day of the call, and a run asks once.
    questions: ({ today }) =>
      forBothNatures({ variant: '', from: today, to: today, params: { variant: 'snapshot' } }),
  },
  publishedAt: '22:00',
  schedule: { at: '23:00', on: 'saturday', hasLookback: false },
  emptyIsNormal: true,
  sample: {
    asked: {
      exchange: 'BSE',
      from: '2025-02-27',
      to: '2025-02-27',
      instruments: ['TCS'],
      params: { variant: 'snapshot', natureOfReport: 'Consolidated' },
    },
    answer: { Value: [{ CurrentPrice, ...rest }] },
  },
});
