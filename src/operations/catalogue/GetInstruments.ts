import { defineBuiltIn } from '../built-in.ts';
import { boolean, int8, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { filter } from './shared.ts';

const RUPEES = { unit: 'rupees' } as const;
const DERIVATIVES = 'Only derivatives have one.';

const table = defineTable({
  name: 'listed_instruments',
  comment:
    'The instruments of an exchange that the source has, with their limits and extremes of the day of the call.',
  key: ['exchange', 'identifier', 'series'],
  fields: [
    text('IDENTIFIER', 'identifier', 'Identifier of the instrument in requests.', { required: true }),
    text('SERIES', 'series', 'Series (NSE) or group (BSE); empty when left out.', { absent: '' }),
    text('EXCHANGE', 'source_exchange', 'Exchange as the record names it.'),
    text('TRADESYMBOL', 'symbol', 'Ticker symbol; of a derivative its short identifier.'),
    int8(
      'TOKENNUMBER',
      'exchange_instrument_id',
      'Number of the instrument on its exchange (BSE: the scrip code).',
    ),
    text('ISIN', 'isin', 'International Securities Identification Number.'),
    text('DESCRIPTION', 'description', 'Name of the security.'),
    text('NAME', 'name', 'Name of the kind of instrument, as sent.'),
    text('PRODUCT', 'product', 'Product.'),
    text('PRODUCTMONTH', 'product_month', `Month of the contract. ${DERIVATIVES}`),
    text('EXPIRY', 'expiry', `Last day of the contract, as sent. ${DERIVATIVES}`),
    text('OPTIONTYPE', 'option_type', `Call or put. ${DERIVATIVES}`),
    numeric('STRIKEPRICE', 'strike_price', `Strike price. ${DERIVATIVES}`, RUPEES),
    text('INDEXNAME', 'index_name', 'Name of the index.'),
    text('UNDERLYINGASSET', 'underlying_asset', `The underlying. ${DERIVATIVES}`),
    text('UNDERLYINGASSETEXPIRY', 'underlying_asset_expiry', `Last day of the underlying. ${DERIVATIVES}`),
    text('PRICEQUOTATIONUNIT', 'price_quotation_unit', 'Unit of its prices.'),
    numeric('QUOTATIONLOT', 'quotation_lot', 'Lot.', { unit: 'shares' }),
    numeric('LOWPRICERANGE', 'lower_limit_price', 'Lower circuit limit.', RUPEES),
    numeric('HIGHPRICERANGE', 'upper_limit_price', 'Upper circuit limit.', RUPEES),
    // As in XML, where no name begins with a digit; the sample in JSON has 52WeekHigh and 52WeekLow.
    numeric('High52Week', 'week52_high_price', 'Highest price of 52 weeks.', {
      ...RUPEES,
      orElse: ['52WeekHigh', 'Week52High'],
    }),
    numeric('Low52Week', 'week52_low_price', 'Lowest price of 52 weeks.', {
      ...RUPEES,
      orElse: ['52WeekLow', 'Week52Low'],
    }),
    boolean('IsActive', 'is_active', 'True if it can be traded; only in XML so far.'),
  ],
});

/**
 * Documented: the sample of the detailed response (no fields are declared), and the list `INSTRUMENTS`, which is
 * `Value` in other responses. Assumed: the key, and that a response without filters lists every active instrument. The
 * form of expiry days is not shown: they are stored as sent.
 */
export default defineBuiltIn({
  name: 'GetInstruments',
  title: 'Listed instruments',
  group: 'reference',
  summary: 'Instruments of an exchange',
  exchanges: ['BSE', 'NSE'],
  request: {
    dates: 'none',
    fixed: { detailedInfo: 'true' },
    instruments: 'none',
    dTFormat: false,
    options: [
      filter('product', 'only this product'),
      filter('series', 'only this series or group'),
      {
        param: 'onlyActive',
        meaning: 'false: expired ones as well',
        values: ['true', 'false'],
        isClosed: true,
        isFilter: true,
      },
    ],
  },
  envelope: 'INSTRUMENTS',
  shapes: [
    { table, has: ['IDENTIFIER'], exchangeColumn: 'source_exchange', dated: false, fullSet: 'exchange' },
  ],
  windows: { per: 'once' },
  schedule: { at: '22:36', on: 'sunday', hasLookback: false },
  emptyIsNormal: false,
});
