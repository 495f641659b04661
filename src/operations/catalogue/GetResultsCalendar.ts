import { defineBuiltIn } from '../built-in.ts';
import { date, int4, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { previousDays, YESTERDAY } from './shared.ts';

const table = defineTable({
  name: 'result_dates',
  comment: 'Days on which companies announce or announced their results.',
  key: ['exchange', 'scrip_code', 'symbol', 'result_date'],
  fields: [
    int4('ScripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    text('ScripId', 'symbol', 'Ticker symbol; empty when left out.', { absent: '', orElse: ['Symbol'] }),
    date('ResultsDate', 'result_date', 'Day of the announcement.', { required: true }),
    text('ScripName', 'scrip_name', 'Name of the security.'),
    text('ISIN', 'isin', 'International Securities Identification Number.'),
    numeric('LTP', 'last_price', 'Price of the last trade at the time of the call.', { unit: 'rupees' }),
    numeric('Change', 'price_change', 'Change of the price at the time of the call.', { unit: 'rupees' }),
    numeric('ChangePct', 'change_percent', 'Change of the price at the time of the call.', {
      unit: 'percent',
    }),
  ],
});

/**
 * Documented: the fields, and the values of `range`, which are relative to the day of the call; only by them can past
 * days be requested, 90 at most. Assumed: that a span begins or ends with the day of the call, that it lists each of
 * its days in full, so that a day that was moved is withdrawn, and the key. `All` is not used: what it means is not
 * stated. The three prices move with the market, so a row gets a revision on each day on which it is requested.
 */
export default defineBuiltIn({
  name: 'GetResultsCalendar',
  title: 'Result dates',
  group: 'fundamentals',
  summary: 'Past and coming days of result announcements',
  exchanges: ['BSE'],
  request: {
    dates: 'spans',
    spans: [
      { value: 'Today', from: 0, to: 0 },
      { value: 'Tomorrow', from: 1, to: 1 },
      { value: 'Next7days', from: 0, to: 7 },
      { value: 'Next15days', from: 0, to: 15 },
      { value: 'Next30days', from: 0, to: 30 },
      YESTERDAY,
      ...previousDays([7, 15, 30, 90]),
    ],
    instruments: 'many',
    dTFormat: true,
    options: [],
  },
  shapes: [
    {
      table,
      has: ['ResultsDate'],
      namedBy: ['ScripCode', 'ScripId', 'Symbol'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  windows: { per: 'range', days: 31, everyDay: true },
  schedule: { at: '22:02', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
