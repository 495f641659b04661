import { date, int8, numeric, text } from './fields.ts';
import { deliveries } from './files/Deliveries.ts';
import { defineOperation } from './operation.ts';
import { defineTable } from './table.ts';

const DERIVATIVES = 'Means nothing in the cash market.';
const meaningless = true;

const table = defineTable({
  name: 'bhavcopy_cm',
  comment:
    'Bhav copy: the end-of-day trade file of the cash market, one row per symbol, series and session. Partitioned by year of trade_date.',
  key: ['exchange', 'symbol', 'series', 'trade_date'],
  partitionBy: 'trade_date',
  names: [
    {
      symbol: 'symbol',
      series: 'series',
      isin: 'isin',
      scripCode: 'exchange_instrument_id',
      name: 'instrument_full_name',
      day: ['trade_date'],
    },
  ],
  fields: [
    text('symbol', 'symbol', 'Ticker symbol; unique per day only together with the series.', {
      required: true,
    }),
    text(
      'sctySrs',
      'series',
      'Series (NSE) or group (BSE) the security trades in; empty when the source leaves it out.',
      { absent: '' },
    ),
    date('tradDt', 'trade_date', 'Trading day (session).', { required: true }),
    text('instrumentName', 'instrument_name', 'Name of the instrument kind.'),
    date('bizDt', 'business_date', 'Business day the file belongs to.'),
    text('sgmt', 'segment', 'Market segment; CM is the cash market.'),
    text('src', 'source_exchange', 'Exchange that wrote the record.'),
    text('finInstrmTp', 'instrument_type', 'Type of the financial instrument, e.g. STK.'),
    int8(
      'finInstrmId',
      'exchange_instrument_id',
      'Number of the instrument on its exchange (BSE: the scrip code).',
    ),
    text('isin', 'isin', 'International Securities Identification Number; shared by T+0 lines.'),
    date('expiry', 'expiry_date', `Expiry. ${DERIVATIVES}`, { meaningless }),
    date('finInstrmActlXpryDt', 'actual_expiry_date', `Actual expiry. ${DERIVATIVES}`, { meaningless }),
    numeric('strikePrice', 'strike_price', `Strike price. ${DERIVATIVES}`, { unit: 'rupees', meaningless }),
    text('optionType', 'option_type', `Call or put. ${DERIVATIVES}`, { meaningless }),
    text('finInstrmNm', 'instrument_full_name', 'Full name of the security.'),
    numeric('openPrice', 'open_price', 'Opening price.', { unit: 'rupees' }),
    numeric('highPrice', 'high_price', 'Highest price.', { unit: 'rupees' }),
    numeric('lowPrice', 'low_price', 'Lowest price.', { unit: 'rupees' }),
    numeric('closePrice', 'close_price', 'Closing price.', { unit: 'rupees' }),
    numeric('lastPrice', 'last_price', 'Price of the last trade.', { unit: 'rupees' }),
    numeric(
      'prevClosePrice',
      'previous_close_price',
      'Closing price of the session before; 0 on the day of listing.',
      { unit: 'rupees' },
    ),
    numeric('underlyingPrice', 'underlying_price', `Price of the underlying. ${DERIVATIVES}`, {
      unit: 'rupees',
      meaningless,
    }),
    numeric('sttlmPric', 'settlement_price', 'Settlement price; blank for T+0 lines.', { unit: 'rupees' }),
    int8('oi', 'open_interest', `Open interest. ${DERIVATIVES}`, { unit: 'contracts', meaningless }),
    int8('oiChng', 'open_interest_change', `Change of the open interest. ${DERIVATIVES}`, {
      unit: 'contracts',
      meaningless,
    }),
    int8('ttq', 'traded_quantity', 'Total traded quantity.', { unit: 'shares' }),
    numeric('ttlTrfVal', 'turnover', 'Total traded value.', { unit: 'rupees' }),
    int8('totalTradesNo', 'trade_count', 'Number of trades.', { unit: 'trades' }),
    text('ssnId', 'session_id', 'Session of the day, e.g. F1.'),
    int8('newBrdLotQty', 'board_lot_quantity', 'Board lot.', { unit: 'shares' }),
  ],
});

export default defineOperation({
  name: 'GetBhavCopyCM',
  summary: 'Bhav copy: end-of-day prices and volumes of the cash market',
  exchanges: ['BSE', 'NSE'],
  request: { dates: 'range', instruments: 'many', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: ['symbol', 'tradDt'],
      symbolColumn: 'symbol',
      exchangeColumn: 'source_exchange',
      dated: true,
      fullSet: 'days',
    },
  ],
  alsoInFiles: [deliveries],
  windows: { per: 'session' },
  publishedAt: '21:15',
  schedule: { at: '21:15', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
  sample: {
    asked: {
      exchange: 'NSE',
      from: '2025-08-29',
      to: '2025-08-29',
      instruments: ['M&M'],
      params: {},
    },
    answer: {
      Value: [
        {
          InstrumentName: '',
          Sgmt: 'CM',
          Src: 'NSE',
          FinInstrmTp: 'STK',
          FinInstrmId: 2031,
          ISIN: 'INE101A01026',
          Symbol: 'M&M',
          SctySrs: 'EQ',
          OptionType: '',
          FinInstrmNm: 'MAHINDRA & MAHINDRA LTD',
          SsnId: 'F1',
          TradDt: '08-29-2025',
          BizDt: '08-29-2025',
          Expiry: '01-01-0001',
          FinInstrmActlXpryDt: '01-01-0001',
          StrikePrice: null,
          OpenPrice: 3271,
          HighPrice: 3280,
          LowPrice: 3187,
          ClosePrice: 3199.5,
          LastPrice: 3200,
          PrevClosePrice: 3295.3,
          UnderlyingPrice: null,
          SttlmPric: 3199.5,
          OI: null,
          OIChng: null,
          TTQ: 3017625,
          TtlTrfVal: 9697194403.8,
          TotalTradesNo: 207686,
          NewBrdLotQty: 1,
          ReceivedAt: '08-29-2025 21:02:11',
          SavedAt: '08-29-2025 21:02:14',
        },
      ],
    },
  },
});
