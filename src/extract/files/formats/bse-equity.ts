import { UDIFF_COLUMNS } from '../../../operations/tables/udiff.ts';
import { defineFormat, type FileFormat, type RecordAdapter } from '../file-format.ts';

/**
 * A bhav copy of BSE from before July 2024. Its files have no tickers, or tickers cut to nine characters, so that two
 * funds of one group are both called `ICICIBANK`. Therefore the code stands for a ticker until the import finds it.
 */
const bseEquity = (
  code: string,
  format: Pick<FileFormat, 'files' | 'marks' | 'needs' | 'columns'> &
    Partial<Pick<FileFormat, 'adapt' | 'day'>>,
): FileFormat =>
  defineFormat({
    ...format,
    name: 'bse-equity',
    dataSet: 'GetBhavCopyCM',
    exchange: 'BSE',
    columns: { ...format.columns, [code]: ['finInstrmId', 'symbol'] },
    withoutTickers: true,
    // Cut to twelve characters.
    vague: ['finInstrmNm'],
  });

/** The tickers of UDiFF files are whole. */
const { TckrSymb: _, ...SHARED_WITH_UDIFF } = UDIFF_COLUMNS;

/** Of the tickers that are cut, one that ends with `#` is a whole one: that of a T+0 line. */
const readWholeTicker =
  (column: string): RecordAdapter =>
  (record, cell) => {
    const ticker = cell(column);
    if (ticker?.endsWith('#') === true) record.symbol = ticker;
  };

export default [
  // Those without an ISIN have no date either. Public collections name them by their day alone.
  bseEquity('SC_CODE', {
    files: ['DDMMMYYYY.csv', 'EQ_ISINCODE_DDMMYY.CSV', 'EQDDMMYY.CSV'],
    day: { field: 'tradDt' },
    marks: ['SC_CODE', 'SC_NAME', 'SC_GROUP'],
    needs: ['OPEN', 'HIGH', 'LOW', 'CLOSE', 'LAST', 'PREVCLOSE', 'NO_TRADES', 'NO_OF_SHRS', 'NET_TURNOV'],
    columns: {
      SC_NAME: 'finInstrmNm',
      SC_GROUP: 'sctySrs',
      ISIN_CODE: 'isin',
      TRADING_DATE: 'tradDt',
      OPEN: 'openPrice',
      HIGH: 'highPrice',
      LOW: 'lowPrice',
      CLOSE: 'closePrice',
      LAST: 'lastPrice',
      PREVCLOSE: 'prevClosePrice',
      NO_TRADES: 'totalTradesNo',
      NO_OF_SHRS: 'ttq',
      NET_TURNOV: 'ttlTrfVal',
    },
  }),
  // August to December 2022.
  bseEquity('SCRIP_CODE', {
    files: ['BSE_EQ_BHAVCOPY_DDMMYYYY.CSV'],
    marks: ['SCRIP_CODE', 'SC_GROUP', 'TRADING_DATE'],
    needs: ['OPEN PRICE', 'HIGH PRICE', 'LOW PRICE', 'CLOSING PRICE', 'NO_OF_SHRS', 'NET_TURNOV'],
    adapt: readWholeTicker('SCRIP ID'),
    columns: {
      SC_NAME: 'finInstrmNm',
      SC_GROUP: 'sctySrs',
      ISIN: 'isin',
      TRADING_DATE: 'tradDt',
      'OPEN PRICE': 'openPrice',
      'HIGH PRICE': 'highPrice',
      'LOW PRICE': 'lowPrice',
      'CLOSING PRICE': 'closePrice',
      LAST: 'lastPrice',
      'PREVIOUS CLOSE PRICE': 'prevClosePrice',
      'SETTLEMENT PRICE': 'sttlmPric',
      NO_TRADES: 'totalTradesNo',
      NO_OF_SHRS: 'ttq',
      NET_TURNOV: 'ttlTrfVal',
    },
  }),
  // From 2023 on, with some of the names of UDiFF files, which have no year's high.
  bseEquity('FinInstrmId', {
    files: ['BSE_EQ_BHAVCOPY_DDMMYYYY.CSV'],
    marks: ['FinInstrmId', 'TradDt', 'FftyTwWkHgh'],
    needs: ['SctySrs', 'OpnPric', 'HghPric', 'LwPric', 'ClsPric', 'TtlTradgVol', 'TtlTrfVal'],
    adapt: readWholeTicker('TckrSymb'),
    columns: SHARED_WITH_UDIFF,
  }),
];
