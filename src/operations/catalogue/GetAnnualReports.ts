import { int4, text } from '../fields.ts';
import { defineOperation } from '../operation.ts';
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
 * Documented: the fields, and that `from` and `to` are years, not moments. Assumed: the key, because a company may file a
 * report twice, and that `Year` is what the years select by. As reports come in the year after theirs, that one is asked for too.
 */
export default defineOperation({
  name: 'GetAnnualReports',
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
  publishedAt: '21:15',
  schedule: { at: '22:32', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
  sample: {
    asked: {
      exchange: 'BSE',
      from: '2024-03-06',
      to: '2025-03-06',
      instruments: ['CARERATING', 'DICIND'],
      params: {},
    },
    answer: {
      Value: [
        {
          Symbol: 'CARERATING',
          CompanyName: 'CARE Ratings Ltd',
          SecurityCode: 534804,
          Year: 2024,
          Url: 'https://{host}/stockinfo/AnnPdfOpen.aspx?Pname=d27c8990-03a2-4fb7-9913-1adf770db0f2.pdf',
          ReceivedAt: '03-06-2025 21:00:04',
          SavedAt: '03-06-2025 21:00:04',
        },
        {
          Symbol: 'DICIND',
          CompanyName: 'DIC INDIA LTD.',
          SecurityCode: 500089,
          Year: 2024,
          Url: 'https://{host}/stockinfo/AnnPdfOpen.aspx?Pname=d066aa9c-9f23-4c31-b294-6fbfe5e59ab4.pdf',
          ReceivedAt: '03-03-2025 21:00:05',
          SavedAt: '03-03-2025 21:00:07',
        },
      ],
    },
  },
});
