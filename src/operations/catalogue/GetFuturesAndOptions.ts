import { defineBuiltIn } from '../built-in.ts';
import { date, int4, int8, numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { closePrice, previousClosePrice } from './shared.ts';

const RUPEES = { unit: 'rupees' } as const;

const table = defineTable({
  name: 'derivative_summaries',
  comment: "Summary of BSE's derivatives market, one row a contract and trading day.",
  key: ['exchange', 'trade_date', 'series_id', 'contract'],
  fields: [
    date('MarketSummaryDate', 'trade_date', 'Trading day.', { required: true, orElse: ['Date'] }),
    int4('SeriesID', 'series_id', 'Number of the contract on the exchange; 0 when left out.', { absent: 0 }),
    text('Identifier', 'contract', 'Identifier of the contract; its code, or empty, when left out.', {
      absent: '',
      orElse: ['SeriesCode'],
    }),
    text('SeriesCode', 'series_code', 'Code of the contract.'),
    text('Symbol', 'symbol', 'Symbol as sent.'),
    text('InstrumentName', 'instrument_name', 'Name of the instrument kind.'),
    text('SessionID', 'session_id', 'Session of the day.'),
    text('ProductType', 'product_type', 'Type of the product.'),
    text('ProductCode', 'product_code', 'Code of the product.'),
    text('ProductId', 'product_id', 'Id of the product.'),
    text('AssetCode', 'asset_code', 'Code of the underlying.'),
    date('Expiry', 'expiry_date', 'Last day of the contract.', { orElse: ['ExpiryDate'] }),
    numeric('StrikePrice', 'strike_price', 'Strike price; 0 for futures.', RUPEES),
    text('OptionType', 'option_type', 'Call or put.'),
    previousClosePrice('PreviousClosePrice', 'PrevClose'),
    numeric('OpenPrice', 'open_price', 'Opening price.', { ...RUPEES, orElse: ['Open'] }),
    numeric('HighPrice', 'high_price', 'Highest price.', { ...RUPEES, orElse: ['High'] }),
    numeric('LowPrice', 'low_price', 'Lowest price.', { ...RUPEES, orElse: ['Low'] }),
    closePrice('ClosePrice', 'Close'),
    numeric('Ltp', 'last_price', 'Price of the last trade.', RUPEES),
    int8('Ltq', 'last_traded_quantity', 'Quantity of the last trade.', { unit: 'as sent' }),
    numeric('SettPrice', 'settlement_price', 'Settlement price.', RUPEES),
    numeric('BasePrice', 'base_price', 'Base price.', RUPEES),
    numeric('BaseChange', 'base_price_change', 'Change against the base price.', RUPEES),
    numeric('AverageTradedPrice', 'average_price', 'Average price of what was traded.', RUPEES),
    int8('TotalTradedQuantity', 'traded_quantity', 'Traded quantity.', {
      orElse: ['CumTrdVol'],
      unit: 'as sent',
    }),
    numeric('TotalTradedValue', 'traded_value', 'Traded value.', { orElse: ['CumTrdVal'], unit: 'as sent' }),
    int8('ContractsNo', 'contract_count', 'Contracts traded.', { unit: 'contracts' }),
    int8('TradesNo', 'trade_count', 'Number of trades.', { orElse: ['TotalTradesNo'], unit: 'trades' }),
    numeric('OpenInterest', 'open_interest', 'Open interest.', { orElse: ['OiQty'], unit: 'as sent' }),
    numeric('OiChng', 'open_interest_change', 'Change of the open interest.', { unit: 'as sent' }),
    numeric('UnderlyingAssetClosePrice', 'underlying_price', 'Closing price of the underlying.', RUPEES),
  ],
});

/**
 * Documented: two lists of fields, the schema and the prose, which share only nine names; both are read, and no sample is
 * printed, so this one is made from the schema. Assumed: which names of the two lists mean the same, the key (the number
 * or the identifier of the contract), and that `from` and `to` select by the day of the summary. Units of quantities
 * and values are not stated.
 */
export default defineBuiltIn({
  name: 'GetFuturesAndOptions',
  title: 'Summaries of derivatives',
  group: 'prices',
  summary: 'Summary of the derivatives market by contract',
  exchanges: ['BFO'],
  request: { dates: 'range', instruments: 'many', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: [],
      hasOneOf: ['MarketSummaryDate', 'Date'],
      namedBy: ['SeriesID', 'Identifier', 'SeriesCode'],
      dated: true,
      fullSet: 'none',
    },
  ],
  windows: { per: 'session' },
  schedule: { at: '21:54', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
