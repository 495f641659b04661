import { date, int8, numeric, type ResponseField, text } from '../../declaration/fields.ts';

/** Also the unit of open interest: in files of both exchanges it is a multiple of the lot. */
export const UNDERLYING = 'units';

const rupees = { unit: 'rupees' } as const;
const underlying = { unit: UNDERLYING } as const;

/**
 * The fields of a bhav copy in the order of its columns, each after the column that it has in a UDiFF file: the daily
 * file of the exchanges from which the source takes its records. The first one is not in the files.
 */
const FIELDS = [
  [
    'TckrSymb',
    text('symbol', 'symbol', 'Ticker symbol; unique per day only together with the series.', {
      required: true,
    }),
  ],
  [
    'SctySrs',
    text(
      'sctySrs',
      'series',
      'Series (NSE) or group (BSE) the security trades in; empty when the source leaves it out.',
      { absent: '' },
    ),
  ],
  ['TradDt', date('tradDt', 'trade_date', 'Trading day.', { required: true })],
  [null, text('instrumentName', 'instrument_name', 'Name of the instrument kind.')],
  ['BizDt', date('bizDt', 'business_date', 'Business day the file belongs to.')],
  ['Sgmt', text('sgmt', 'segment', 'Market segment; CM is the cash market.')],
  ['Src', text('src', 'source_exchange', 'Exchange that wrote the record.')],
  ['FinInstrmTp', text('finInstrmTp', 'instrument_type', 'Type of the financial instrument, e.g. STK.')],
  [
    'FinInstrmId',
    int8(
      'finInstrmId',
      'exchange_instrument_id',
      'Number of the instrument on its exchange (BSE: the scrip code).',
    ),
  ],
  ['ISIN', text('isin', 'isin', 'International Securities Identification Number; shared by T+0 lines.')],
  ['XpryDt', date('expiry', 'expiry_date', 'Expiry.')],
  ['FininstrmActlXpryDt', date('finInstrmActlXpryDt', 'actual_expiry_date', 'Actual expiry.')],
  ['StrkPric', numeric('strikePrice', 'strike_price', 'Strike price.', rupees)],
  ['OptnTp', text('optionType', 'option_type', 'Call or put.')],
  ['FinInstrmNm', text('finInstrmNm', 'instrument_full_name', 'Full name of the security.')],
  ['OpnPric', numeric('openPrice', 'open_price', 'Opening price.', rupees)],
  ['HghPric', numeric('highPrice', 'high_price', 'Highest price.', rupees)],
  ['LwPric', numeric('lowPrice', 'low_price', 'Lowest price.', rupees)],
  ['ClsPric', numeric('closePrice', 'close_price', 'Closing price.', rupees)],
  ['LastPric', numeric('lastPrice', 'last_price', 'Price of the last trade.', rupees)],
  [
    'PrvsClsgPric',
    numeric(
      'prevClosePrice',
      'previous_close_price',
      'Closing price of the trading day before; 0 on the day of listing.',
      rupees,
    ),
  ],
  ['UndrlygPric', numeric('underlyingPrice', 'underlying_price', 'Price of the underlying.', rupees)],
  ['SttlmPric', numeric('sttlmPric', 'settlement_price', 'Settlement price; blank for T+0 lines.', rupees)],
  ['OpnIntrst', int8('oi', 'open_interest', 'Open interest.', underlying)],
  ['ChngInOpnIntrst', int8('oiChng', 'open_interest_change', 'Change of the open interest.', underlying)],
  ['TtlTradgVol', int8('ttq', 'traded_quantity', 'Total traded quantity.', { unit: 'shares' })],
  ['TtlTrfVal', numeric('ttlTrfVal', 'turnover', 'Total traded value.', rupees)],
  ['TtlNbOfTxsExctd', int8('totalTradesNo', 'trade_count', 'Number of trades.', { unit: 'trades' })],
  ['SsnId', text('ssnId', 'session_id', 'Session of the day, e.g. F1.')],
  ['NewBrdLotQty', int8('newBrdLotQty', 'board_lot_quantity', 'Board lot.', { unit: 'shares' })],
] as const satisfies readonly (readonly [inFiles: string | null, field: ResponseField])[];

/** What a field means in another segment. */
export type OwnMeaning = Partial<Omit<ResponseField, 'from' | 'source' | 'column' | 'kind'>>;

/** The fields of a bhav copy, with what they mean in the cash market or everywhere. */
export const UDIFF_FIELDS = FIELDS.map(([, field]) => field);

/** The source field of each column of a UDiFF file; its other columns have none. */
export const UDIFF_COLUMNS: Readonly<Record<string, string>> = Object.fromEntries(
  FIELDS.flatMap(([inFiles, { source }]) => (inFiles === null ? [] : [[inFiles, source]])),
);
