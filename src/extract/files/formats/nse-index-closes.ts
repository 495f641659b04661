import { defineFormat } from '../../../operations/file-format.ts';

/** Closing values of NSE's indices. Turnover, ratios and yield have no field. */
export default defineFormat({
  name: 'nse-index-closes',
  files: ['ind_close_all_DDMMYYYY.csv'],
  dataSet: 'GetIndexDetail',
  exchange: 'NSE_IDX',
  // From June 2014 to June 2015.
  hasSlashes: true,
  marks: ['Index Name', 'Index Date', 'Closing Index Value'],
  columns: {
    'Index Name': ['IndexCode', 'IndexName'],
    'Index Date': 'Date',
    'Open Index Value': 'Opening',
    'High Index Value': 'High',
    'Low Index Value': 'Low',
    'Closing Index Value': 'Closing',
    'Points Change': 'Change',
    'Change(%)': 'PerChange',
  },
});
