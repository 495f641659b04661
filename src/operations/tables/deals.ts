import {
  type DerivedField,
  date,
  int4,
  int8,
  numeric,
  occurrence,
  symbolOf,
  text,
} from '../../declaration/fields.ts';
import { defineShape, defineTable } from '../../declaration/table.ts';

/** What a security is named by: its ticker symbol in lists of NSE, its name in those of BSE. */
const SECURITY = ['ScripId', 'ScripName'] as const;

const DISTINGUISHING = ['DealDate', 'ScripCode', ...SECURITY, 'ClientName', 'DealType', 'Qty', 'Price'];

/** The ticker symbol, where a list may print a name instead of it: one word in capitals is a symbol. */
const symbol = (): DerivedField<'symbol', 'text'> => {
  const [byId, byName] = SECURITY.map((source) => symbolOf(source).value);
  return {
    ...symbolOf('ScripId'),
    meaning: 'Ticker symbol: scrip_id less its series suffix; null where the list prints a name there.',
    value: (get, read, memory) => {
      const value = (read('ScripId', 'text') === null ? byName : byId)?.(get, read, memory);
      return typeof value === 'string' && /^[^\sa-z]+$/.test(value) ? value : null;
    },
  };
};

/** Bulk and block deals have the same fields. They have no number: the whole line is the key, and equal ones are counted. */
export const dealShape = (table: string, subject: string) =>
  defineShape({
    table: defineTable({
      name: table,
      comment: `${subject}, one row for each side that the exchange discloses. They have no number: equal lines of a list are rows of their own.`,
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
        text('ScripId', 'scrip_id', 'Security as printed: its ticker symbol, in lists of BSE its name.', {
          absent: '',
          orElse: ['ScripName'],
        }),
        text('ClientName', 'client_name', 'Who dealt; empty when left out.', { absent: '' }),
        text('DealType', 'deal_type', 'B bought, S sold; empty when left out.', { absent: '' }),
        int8('Qty', 'traded_quantity', 'Quantity of the deal.', { absent: 0, unit: 'shares' }),
        numeric('Price', 'deal_price', 'Price of the deal; 0 when left out.', { absent: 0, unit: 'rupees' }),
        occurrence('ordinal', DISTINGUISHING),
        symbol(),
        text('ScripName', 'scrip_name', 'Name of the security, where it has a column of its own.'),
      ],
    }),
    has: ['DealDate', 'ClientName'],
    namedBy: ['ScripCode', ...SECURITY],
    dated: true,
    fullSet: 'days',
  });
