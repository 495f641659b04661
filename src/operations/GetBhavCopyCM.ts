import { deliveries } from './files/Deliveries.ts';
import { defineOperation } from './operation.ts';
import { defineTable } from './table.ts';
import { UDIFF_FIELDS } from './udiff.ts';

/** Columns that only derivatives have. */
const DERIVATIVES = [
  'expiry_date',
  'actual_expiry_date',
  'strike_price',
  'option_type',
  'underlying_price',
  'open_interest',
  'open_interest_change',
];

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
  fields: UDIFF_FIELDS.map((field) =>
    DERIVATIVES.includes(field.column)
      ? { ...field, meaning: `${field.meaning} Means nothing in the cash market.`, meaningless: true }
      : field,
  ),
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
  udiff: { segment: 'CM', exchanges: { BSE: 'BSE', NSE: 'NSE' } },
  alsoInFiles: [deliveries],
  windows: { per: 'session' },
  publishedAt: '21:15',
  schedule: { at: '21:15', on: 'daily', hasLookback: true, value: 'prices' },
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
