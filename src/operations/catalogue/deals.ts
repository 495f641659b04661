import { date, int4, int8, numeric, occurrence, text } from '../fields.ts';
import type { Shape } from '../operation.ts';
import { defineTable } from '../table.ts';
import { previousDays, tickerIn, YESTERDAY } from './shared.ts';

/** The spans of both operations: the enumeration of the service is `BulkDealsRange`. */
export const BULK_DEAL_SPANS = [YESTERDAY, ...previousDays([7, 15, 30])];

/** What a security is named by: as in the sample, in the schema and in CSV, and in the interface description. */
const SECURITY = ['ScripId', 'Symbol', 'ScripName'] as const;

const TELL_APART = ['DealDate', 'ScripCode', ...SECURITY, 'ClientName', 'DealType', 'Qty', 'Price'];

/** Bulk and block deals have the same fields. They have no number: the whole line is the key, and equal ones are counted. */
export const dealShape = (table: string, what: string): Shape => ({
  table: defineTable({
    name: table,
    comment: `${what}, one row for each side that the exchange discloses. They have no number: the rows of a day are replaced as a whole.`,
    key: [
      'exchange',
      'deal_date',
      'scrip_code',
      'scrip_id',
      'client_name',
      'deal_type',
      'traded_quantity',
      'deal_price',
      'ordinal',
    ],
    fields: [
      date('DealDate', 'deal_date', 'Day of the deal.', { required: true }),
      int4('ScripCode', 'scrip_code', 'Security code of the exchange; 0 where it has none.', { absent: 0 }),
      text('ScripId', 'scrip_id', 'Security as sent: its ticker symbol, in some responses its name.', {
        absent: '',
        orElse: ['Symbol', 'ScripName'],
      }),
      text('ClientName', 'client_name', 'Who dealt; empty when left out.', { absent: '' }),
      text('DealType', 'deal_type', 'B bought, S sold; empty when left out.', { absent: '' }),
      int8('Qty', 'traded_quantity', 'Quantity of the deal.', { absent: 0, unit: 'shares' }),
      numeric('Price', 'deal_price', 'Price of the deal; 0 when left out.', { absent: 0, unit: 'rupees' }),
      occurrence('ordinal', TELL_APART),
      tickerIn(SECURITY),
      text('ScripName', 'scrip_name', 'Name of the security, where it has a field of its own.'),
      numeric('QtyPct', 'equity_percent', 'Quantity as a share of the shares issued; 0 may mean unknown.', {
        unit: 'percent',
      }),
    ],
  }),
  has: ['DealDate', 'ClientName'],
  namedBy: ['ScripCode', ...SECURITY],
  symbolColumn: 'symbol',
  dated: true,
  fullSet: 'days',
});
