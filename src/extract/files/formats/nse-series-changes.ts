import { appendSeries, defineFormat } from '../file-format.ts';

/** NSE's list of moves to another series. */
export default defineFormat({
  name: 'nse-series-changes',
  files: ['series_change.csv'],
  dataSet: 'GetSeriesChange',
  exchange: 'NSE',
  byTradingDay: false,
  mayBeEmpty: true,
  marks: ['SYMBOL', 'FROM SERIES', 'TO SERIES', 'CHANGE DATE'],
  adapt: appendSeries('scripId', 'prevSeries'),
  // NIL on a day without changes.
  passedOverWithout: { field: 'scripName', because: 'say that there are no changes' },
  columns: {
    SYMBOL: 'scripId',
    SECURITY: 'scripName',
    'FROM SERIES': 'prevSeries',
    'TO SERIES': 'toSeries',
    'CHANGE DATE': 'changeDate',
  },
});
