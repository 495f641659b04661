import { UDIFF_COLUMNS } from '../../operations/udiff.ts';
import { listedEventProblem } from '../corporate-actions/listed-events.ts';
import type { Problem } from '../types.ts';

type FormatName =
  | 'udiff'
  | 'nse-bhav'
  | 'nse-full'
  | 'nse-deliveries'
  | 'bse-equity'
  | 'nse-actions'
  | 'nse-actions-daily'
  | 'bse-actions'
  | 'actions'
  | 'symbol-changes';

/** The column of a field in a file, and how its text is converted. */
interface FileField {
  readonly column: string;
  /** The column's name in files that have none named `column`. */
  readonly orColumn?: string;
  readonly read?: (text: string) => string;
}

/** A file format. It is recognized by the header of a file, not by its name. */
export interface FileFormat {
  readonly name: FormatName;
  /** The data set that its rows are records of; null if that depends on the segment (`DataSet.udiff`). */
  readonly dataSet: string | null;
  /** The exchange that publishes such files; null if the rows name it. */
  readonly exchange: 'NSE' | 'BSE' | null;
  /** A header that has all of these columns is of this format. */
  readonly marks: readonly string[];
  /** Further columns that the header must have. */
  readonly needs: readonly string[];
  /** By source field. Columns that are not in `marks` or `needs` may be missing. */
  readonly fields: Readonly<Record<string, FileField>>;
  /** Each row is also a record of another data set, unless the header lacks one of these columns. */
  readonly also?: { readonly dataSet: string; readonly fields: Readonly<Record<string, FileField>> };
  /** True if its rows are about sessions, which are stored one by one. If not, a file is stored as a whole. */
  readonly bySession: boolean;
  /** Of two files of a session that differ, the one whose format has the greater rank is used. */
  readonly rank: number;
  /** The column that names the exchange, if `exchange` is null and it is not the one of the bhav copy. */
  readonly exchangeColumn?: string;
  /** Rows without this field are skipped and counted in a warning; they are not rejects. */
  readonly passedOverWithout?: { readonly field: string; readonly because: string };
  /** Finds a problem of a record as a whole. */
  readonly check?: (record: Readonly<Record<string, string | null>>) => Problem | null;
  /** True if a file lists everything that was traded on its exchange that day. */
  readonly complete: boolean;
  /** True if the name of the file has the date, because no column does. */
  readonly datedByName: boolean;
  /** True if it identifies instruments only by number, so that tickers have to come from other data. */
  readonly withoutTickers: boolean;
  /** A column with tickers cut to nine characters, of which one that ends with `#` is a whole one: that of a T+0 line. */
  readonly cutTickers?: string;
  /** Fields that are cut or less precise than in other formats: a stored value is kept. */
  readonly vague: readonly string[];
  /** Columns that may be `-` although there is a value: then a stored value is kept. */
  readonly sometimesBlank: readonly string[];
  /** Fields that the file rounds: a stored value that differs by less than this is kept. */
  readonly rounded: Readonly<Record<string, number>>;
}

const plain = {
  dataSet: 'GetBhavCopyCM',
  bySession: true,
  rank: 0,
  complete: false,
  datedByName: false,
  withoutTickers: false,
  vague: [],
  sometimesBlank: [],
  rounded: {},
} as const;

const fieldsOf = (columns: Readonly<Record<string, string>>): Record<string, FileField> =>
  Object.fromEntries(Object.entries(columns).map(([column, source]) => [source, { column }]));

/** `BhavCopy_NSE_CM_0_0_0_YYYYMMDD_F_0000.csv`, and the same of BSE and of other segments. */
const UDIFF: FileFormat = {
  ...plain,
  name: 'udiff',
  dataSet: null,
  rank: 3,
  exchange: null,
  marks: ['TradDt', 'TckrSymb'],
  needs: [
    'TradDt',
    'Sgmt',
    'Src',
    'TckrSymb',
    'SctySrs',
    'OpnPric',
    'HghPric',
    'LwPric',
    'ClsPric',
    'LastPric',
    'PrvsClsgPric',
    'TtlTradgVol',
    'TtlTrfVal',
    'TtlNbOfTxsExctd',
  ],
  fields: fieldsOf(UDIFF_COLUMNS),
  complete: true,
};

/** `cmDDMMMYYYYbhav.csv` of NSE until July 2024; the oldest lack TOTALTRADES and ISIN. */
const NSE_BHAV: FileFormat = {
  ...plain,
  name: 'nse-bhav',
  // The last price of the full bhav copy is now and then another one.
  rank: 2,
  exchange: 'NSE',
  marks: ['SYMBOL', 'SERIES', 'TIMESTAMP', 'TOTTRDQTY'],
  needs: ['OPEN', 'HIGH', 'LOW', 'CLOSE', 'LAST', 'PREVCLOSE', 'TOTTRDVAL'],
  fields: fieldsOf({
    SYMBOL: 'symbol',
    SERIES: 'sctySrs',
    TIMESTAMP: 'tradDt',
    ISIN: 'isin',
    OPEN: 'openPrice',
    HIGH: 'highPrice',
    LOW: 'lowPrice',
    CLOSE: 'closePrice',
    LAST: 'lastPrice',
    PREVCLOSE: 'prevClosePrice',
    TOTTRDQTY: 'ttq',
    TOTTRDVAL: 'ttlTrfVal',
    TOTALTRADES: 'totalTradesNo',
  }),
};

/** Lakhs of rupees as rupees, without touching the digits. */
const lakhs = (text: string) => `${text}e5`;

/** `sec_bhavdata_full_DDMMYYYY.csv` of NSE, also with the names that programs write. The average price has no field. */
const nseFull = (dayColumn: 'DATE1' | 'DATE'): FileFormat => ({
  ...plain,
  name: 'nse-full',
  exchange: 'NSE',
  marks: ['SYMBOL', 'SERIES', dayColumn, 'TURNOVER_LACS'],
  needs: [
    'PREV_CLOSE',
    'OPEN_PRICE',
    'HIGH_PRICE',
    'LOW_PRICE',
    'LAST_PRICE',
    'CLOSE_PRICE',
    'TTL_TRD_QNTY',
    'NO_OF_TRADES',
  ],
  fields: {
    ...fieldsOf({
      SYMBOL: 'symbol',
      SERIES: 'sctySrs',
      [dayColumn]: 'tradDt',
      PREV_CLOSE: 'prevClosePrice',
      OPEN_PRICE: 'openPrice',
      HIGH_PRICE: 'highPrice',
      LOW_PRICE: 'lowPrice',
      LAST_PRICE: 'lastPrice',
      CLOSE_PRICE: 'closePrice',
      TTL_TRD_QNTY: 'ttq',
      NO_OF_TRADES: 'totalTradesNo',
    }),
    ttlTrfVal: { column: 'TURNOVER_LACS', read: lakhs },
  },
  also: {
    dataSet: 'Deliveries',
    fields: fieldsOf({
      SYMBOL: 'symbol',
      SERIES: 'series',
      [dayColumn]: 'tradDt',
      TTL_TRD_QNTY: 'tradedQuantity',
      DELIV_QTY: 'deliveredQuantity',
      DELIV_PER: 'deliveredPercent',
    }),
  },
  // For some securities only the delivery positions have them.
  sometimesBlank: ['delivered_quantity', 'delivered_percent'],
  // Two decimals of a lakh.
  rounded: { ttlTrfVal: 1_000 },
});

/** `MTO_DDMMYYYY.DAT` of NSE, with the columns of `readDeliveryPositions`: its own header lacks one. */
const NSE_DELIVERIES: FileFormat = {
  ...plain,
  name: 'nse-deliveries',
  dataSet: 'Deliveries',
  // The full bhav copy has its deliveries from them.
  rank: 1,
  exchange: 'NSE',
  marks: ['TRADE_DATE', 'DELIVERABLE_QUANTITY', 'PERCENT_DELIVERABLE'],
  needs: ['SYMBOL', 'SERIES', 'QUANTITY_TRADED'],
  fields: fieldsOf({
    SYMBOL: 'symbol',
    SERIES: 'series',
    TRADE_DATE: 'tradDt',
    QUANTITY_TRADED: 'tradedQuantity',
    DELIVERABLE_QUANTITY: 'deliveredQuantity',
    PERCENT_DELIVERABLE: 'deliveredPercent',
  }),
};

/**
 * A format of BSE from before July 2024. Its files have no tickers, or tickers cut to nine characters, so that two funds
 * of one group are both called `ICICIBANK`. Therefore the code stands for a ticker until the import finds it.
 */
function bseEquity(
  codeColumn: string,
  columns: Readonly<Record<string, string>>,
  recognized: Pick<FileFormat, 'marks' | 'needs' | 'cutTickers'>,
): FileFormat {
  return {
    ...plain,
    ...recognized,
    name: 'bse-equity',
    exchange: 'BSE',
    fields: { ...fieldsOf({ [codeColumn]: 'finInstrmId', ...columns }), symbol: { column: codeColumn } },
    withoutTickers: true,
    // Cut to twelve characters.
    vague: ['finInstrmNm'],
  };
}

/** `EQ_ISINCODE_DDMMYY.CSV` and, without ISIN and date, `EQDDMMYY.CSV`. */
const BSE_EQUITY: FileFormat = {
  ...bseEquity(
    'SC_CODE',
    {
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
    {
      marks: ['SC_CODE', 'SC_NAME', 'SC_GROUP'],
      needs: ['OPEN', 'HIGH', 'LOW', 'CLOSE', 'LAST', 'PREVCLOSE', 'NO_TRADES', 'NO_OF_SHRS', 'NET_TURNOV'],
    },
  ),
  datedByName: true,
};

/** `BSE_EQ_BHAVCOPY_DDMMYYYY.CSV`, August to December 2022. */
const BSE_STANDARD_2022 = bseEquity(
  'SCRIP_CODE',
  {
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
  {
    marks: ['SCRIP_CODE', 'SC_GROUP', 'TRADING_DATE'],
    needs: ['OPEN PRICE', 'HIGH PRICE', 'LOW PRICE', 'CLOSING PRICE', 'NO_OF_SHRS', 'NET_TURNOV'],
    cutTickers: 'SCRIP ID',
  },
);

/** `BSE_EQ_BHAVCOPY_DDMMYYYY.CSV` from 2023 on, with some of the names of UDiFF files. */
const BSE_STANDARD = bseEquity(
  'FinInstrmId',
  {
    FinInstrmNm: 'finInstrmNm',
    SctySrs: 'sctySrs',
    ISIN: 'isin',
    TradDt: 'tradDt',
    OpnPric: 'openPrice',
    HghPric: 'highPrice',
    LwPric: 'lowPrice',
    ClsPric: 'closePrice',
    LastPric: 'lastPrice',
    PrvsClsgPric: 'prevClosePrice',
    SttlmPric: 'sttlmPric',
    TtlNbOfTxsExctd: 'totalTradesNo',
    TtlTradgVol: 'ttq',
    TtlTrfVal: 'ttlTrfVal',
  },
  {
    // UDiFF files have no year's high.
    marks: ['FinInstrmId', 'TradDt', 'FftyTwWkHgh'],
    needs: ['SctySrs', 'OpnPric', 'HghPric', 'LwPric', 'ClsPric', 'TtlTradgVol', 'TtlTrfVal'],
    cutTickers: 'TckrSymb',
  },
);

const list = { ...plain, dataSet: 'CorporateActionLists', bySession: false } as const;

/** `CF-CA-equities-….csv` of NSE. */
const NSE_ACTIONS: FileFormat = {
  ...list,
  name: 'nse-actions',
  exchange: 'NSE',
  marks: ['SYMBOL', 'PURPOSE', 'EX-DATE'],
  needs: [],
  fields: {
    ...fieldsOf({
      SYMBOL: 'symbol',
      SERIES: 'series',
      PURPOSE: 'purpose',
      'EX-DATE': 'exDate',
      'RECORD DATE': 'recordDate',
    }),
    // The second names were used until 2020.
    companyName: { column: 'COMPANY NAME', orColumn: 'COMPANY' },
    faceValue: { column: 'FACE VALUE', orColumn: 'FACE VALUE(RS.)' },
    bookClosureFrom: { column: 'BOOK CLOSURE START DATE', orColumn: 'BC START DATE' },
    bookClosureTo: { column: 'BOOK CLOSURE END DATE', orColumn: 'BC END DATE' },
  },
};

/** `BcDDMMYY.csv`, the corporate actions in NSE's daily archive. */
const NSE_ACTIONS_DAILY: FileFormat = {
  ...list,
  name: 'nse-actions-daily',
  exchange: 'NSE',
  marks: ['SYMBOL', 'PURPOSE', 'EX_DT'],
  needs: [],
  fields: {
    ...fieldsOf({
      SYMBOL: 'symbol',
      SERIES: 'series',
      PURPOSE: 'purpose',
      SECURITY: 'companyName',
      EX_DT: 'exDate',
      RECORD_DT: 'recordDate',
      BC_STRT_DT: 'bookClosureFrom',
      BC_END_DT: 'bookClosureTo',
    }),
    // Each line says of which kind its list is. Lists of other kinds do not know it, so that what is stored is kept.
    isDaily: { column: 'SYMBOL', read: () => 'true' },
  },
  passedOverWithout: {
    field: 'exDate',
    because: 'have no ex-date: redemptions and calls, mostly of bonds and funds',
  },
};

/** BSE's list of corporate actions. */
const BSE_ACTIONS: FileFormat = {
  ...list,
  name: 'bse-actions',
  exchange: 'BSE',
  marks: ['SECURITY CODE', 'EX DATE', 'PURPOSE'],
  needs: ['SECURITY NAME'],
  fields: fieldsOf({
    'SECURITY CODE': 'scripCode',
    'SECURITY NAME': 'symbol',
    'COMPANY NAME': 'companyName',
    PURPOSE: 'purpose',
    'EX DATE': 'exDate',
    'RECORD DATE': 'recordDate',
    'BC START DATE': 'bookClosureFrom',
    'BC END DATE': 'bookClosureTo',
    'ACTUAL PAYMENT DATE': 'paymentDate',
  }),
};

/** A user's own list, for events that no other list has. */
const ACTIONS: FileFormat = {
  ...list,
  name: 'actions',
  exchange: null,
  exchangeColumn: 'EXCHANGE',
  marks: ['EXCHANGE', 'SYMBOL', 'EX_DATE', 'KIND'],
  needs: ['RATIO'],
  fields: {
    ...fieldsOf({ EX_DATE: 'exDate', RATIO: 'ratio', NOTE: 'purpose' }),
    symbol: { column: 'SYMBOL', read: (text) => text.toUpperCase() },
    kind: { column: 'KIND', read: (text) => text.toLowerCase() },
  },
  check: ({ kind, ratio }) => listedEventProblem(kind ?? null, ratio ?? null),
};

const SYMBOL_CHANGES: FileFormat = {
  ...list,
  dataSet: 'SymbolChanges',
  name: 'symbol-changes',
  exchange: 'NSE',
  marks: ['SM_KEY_SYMBOL', 'SM_NEW_SYMBOL', 'SM_APPLICABLE_FROM'],
  needs: [],
  fields: {
    ...fieldsOf({
      SM_KEY_SYMBOL: 'oldSymbol',
      SM_NEW_SYMBOL: 'newSymbol',
      SM_APPLICABLE_FROM: 'changedOn',
    }),
    // The second name is used in files with a header.
    companyName: { column: 'SM_NAME', orColumn: 'SYMB_COMPANY_NAME' },
  },
};

export const FORMATS: readonly FileFormat[] = [
  // Before UDiFF, whose marks it has as well.
  BSE_STANDARD,
  UDIFF,
  NSE_BHAV,
  nseFull('DATE1'),
  nseFull('DATE'),
  NSE_DELIVERIES,
  BSE_STANDARD_2022,
  BSE_EQUITY,
  NSE_ACTIONS,
  NSE_ACTIONS_DAILY,
  BSE_ACTIONS,
  ACTIONS,
  SYMBOL_CHANGES,
];
