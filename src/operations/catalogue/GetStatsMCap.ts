import { defineBuiltIn } from '../built-in.ts';
import { date, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { closePrice, tickerIn, tradeDate } from './shared.ts';

const table = defineTable({
  name: 'market_caps',
  comment: 'Market capitalisation and issued shares of each security on each trading day.',
  key: ['exchange', 'trade_date', 'scrip_id', 'series'],
  fields: [
    tradeDate,
    text('ScripId', 'scrip_id', 'Security id as sent; may carry a series suffix after a dot.', {
      required: true,
      orElse: ['Symbol'],
    }),
    text('Series', 'series', 'Series (NSE) or group (BSE); empty when left out.', { absent: '' }),
    tickerIn(['ScripId', 'Symbol']),
    text('ScripName', 'scrip_name', 'Name of the security.'),
    date('LastTradeDate', 'last_trade_date', 'Day on which the security traded last.'),
    numeric('FaceValue', 'face_value', 'Face value of the share; 0 in the published sample.', {
      unit: 'rupees',
    }),
    numeric('NoOfShares', 'issued_shares_lakh', 'Shares issued.', { unit: 'lakhs of shares' }),
    closePrice('Close'),
    numeric('Mcap', 'market_cap_crore', 'Market capitalisation.', {
      orElse: ['MarketCapVal', 'MarketCap'],
      unit: 'crores of rupees',
    }),
  ],
});

/**
 * Documented: the fields of the sample; the page describes those of another operation. Assumed: the units (the closing
 * price times the shares in lakhs is the market capitalisation in crores, but for 0.01 %), and that a request without an
 * instrument lists every security of the day.
 */
export default defineBuiltIn({
  name: 'GetStatsMCap',
  title: 'Market capitalisation and shares',
  group: 'fundamentals',
  summary: 'Market capitalisation and issued shares of each security',
  exchanges: ['BSE', 'NSE'],
  request: { dates: 'day', instruments: 'one', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: ['Date'],
      hasOneOf: ['ScripId', 'Symbol'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  windows: { per: 'session' },
  schedule: { at: '21:32', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
