import { defineBuiltIn } from '../built-in.ts';
import { int4, text } from '../fields.ts';
import { defineTable } from '../table.ts';

const table = defineTable({
  name: 'annual_reports',
  comment: 'Links to the annual reports of companies.',
  key: ['exchange', 'scrip_code', 'symbol', 'year', 'url'],
  fields: [
    int4('SecurityCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', {
      absent: 0,
      orElse: ['ScripCode'],
    }),
    text('Symbol', 'symbol', 'Ticker symbol; empty when left out.', { absent: '', orElse: ['ScripId'] }),
    int4('Year', 'year', 'Year of the report, as sent.', { required: true }),
    text('Url', 'url', 'Link to the report; empty when left out.', { absent: '' }),
    text('CompanyName', 'company_name', 'Name of the company.'),
    text('FileName', 'file_name', 'File name; only in CSV, and empty there in the published sample.'),
  ],
});

/**
 * Documented: the fields, and that `from` and `to` are years, not moments. Assumed: the key, because a company may file
 * a report twice, and that `Year` is what the years select by. As reports come in the year after theirs, that one is
 * requested too.
 */
export default defineBuiltIn({
  name: 'GetAnnualReports',
  title: 'Annual reports',
  group: 'fundamentals',
  summary: 'Links to annual reports',
  exchanges: ['BSE'],
  request: { dates: 'years', yearsBefore: 1, instruments: 'many', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: ['Year', 'Url'],
      namedBy: ['SecurityCode', 'ScripCode', 'Symbol', 'ScripId'],
      symbolColumn: 'symbol',
      dated: false,
      fullSet: 'none',
    },
  ],
  windows: { per: 'range', days: 366, everyDay: true },
  schedule: { at: '22:32', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
