import { defineFormat } from '../file-format.ts';

/** Securities of NSE at a new high or low of 52 weeks, in its daily archive. */
export default defineFormat({
  name: 'nse-highs-lows',
  files: ['hlDDMMYY.csv', 'hlDDMMYYYY.csv'],
  dataSet: 'GetNewHL',
  exchange: 'NSE',
  mayBeEmpty: true,
  day: { field: 'Date' },
  marks: ['SECURITY', 'NEW', 'PREVIOUS', 'NEW_STATUS'],
  columns: { SECURITY: 'ScripName', NEW: 'New', PREVIOUS: 'Prev', NEW_STATUS: 'NewBand' },
});
