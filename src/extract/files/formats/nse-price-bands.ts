import { appendSeries, defineFormat } from '../file-format.ts';

/** Securities of NSE at a price band; the oldest files name the series SR. A security may be at both. */
export default defineFormat({
  name: 'nse-price-bands',
  files: ['bhDDMMYY.csv', 'bhDDMMYYYY.csv'],
  dataSet: 'GetCircuitBreakers',
  exchange: 'NSE',
  mayBeEmpty: true,
  day: { field: 'date' },
  adapt: appendSeries('scripId', 'series'),
  marks: ['SYMBOL', 'HIGH/LOW'],
  columns: {
    SYMBOL: 'scripId',
    SERIES: 'series',
    SR: 'series',
    SECURITY: 'scripName',
    'HIGH/LOW': 'band',
  },
});
