import { createHash } from 'node:crypto';
import { operationNamed } from '../../../src/operations/registry.ts';

// Responses that a test makes up: what was requested, what was sent, and when. The model (model.ts) knows what they
// mean from here alone.

/** Days that are trading days, of a year of which no calendar file knows holidays. */
export const DAYS = ['2027-08-17', '2027-08-18', '2027-08-19'] as const;
/** A day that is not requested yet. */
const OTHER_DAY = '2027-09-30';
export const SYMBOLS = 8;

/** Times of the calls, in UTC, and how many of the days may still get data then if a response lacks them. */
export const CALLS = [
  { at: Date.UTC(2027, 7, 19, 15, 30), calledOn: '2027-08-19', awaitedFrom: 0 },
  { at: Date.UTC(2027, 7, 20, 4, 30), calledOn: '2027-08-20', awaitedFrom: 0 },
  { at: Date.UTC(2027, 7, 25, 4, 30), calledOn: '2027-08-25', awaitedFrom: 1 },
  { at: Date.UTC(2027, 9, 22, 4, 30), calledOn: '2027-10-22', awaitedFrom: 3 },
] as const;
/** How many trading days a response without records is awaited: `awaitedFrom` above is computed for this. */
export const LOOKBACK = 5;

/** When a record says that it was saved: not at all, at one of these times, or after it was sent. */
export const SAVED = [0, Date.UTC(2027, 5, 1, 3), Date.UTC(2027, 5, 1, 4), Date.UTC(2199, 0, 1)] as const;

/** A table that responses of a kind fill, and its columns as the test reads them. */
export interface TableKind {
  readonly name: string;
  /** Do its records say their day? */
  readonly dated: boolean;
  /** What a full response lists in full. */
  readonly lists: 'days' | 'exchange' | 'none';
  /** SQL of the day, the symbol and the value of a row. */
  readonly columns: readonly [day: string, symbol: string, value: string];
}

interface KindOfResponse {
  readonly operation: string;
  readonly tables: readonly [TableKind, ...TableKind[]];
  /** Is it normal that a day has no records? */
  readonly mayBeEmpty: boolean;
  /** `instrument`: it is about one; `once`: about no days. */
  readonly requests: 'day' | 'days' | 'instrument' | 'once';
  /** Can some instruments be requested? Then a rejected record may name one. */
  readonly namesInstruments: boolean;
  readonly params?: Readonly<Record<string, string>>;
}

export const KINDS = {
  bhav: {
    operation: 'GetBhavCopyCM',
    tables: [
      {
        name: 'bhavcopy_cm',
        dated: true,
        lists: 'days',
        columns: ['trade_date', 'symbol', 'instrument_full_name'],
      },
    ],
    mayBeEmpty: false,
    requests: 'day',
    namesInstruments: true,
  },
  gainers: {
    operation: 'GetTop5GainersLosers',
    tables: [
      {
        name: 'top_gainers_losers',
        dated: true,
        lists: 'days',
        columns: ['trade_date', `'S' || scrip_code - 1`, `scrip_name || '#' || rank`],
      },
    ],
    mayBeEmpty: false,
    requests: 'days',
    namesInstruments: false,
  },
  changes: {
    operation: 'GetSeriesChange',
    tables: [
      {
        name: 'series_changes',
        dated: true,
        lists: 'days',
        columns: ['change_date', 'scrip_id', 'scrip_name'],
      },
    ],
    mayBeEmpty: true,
    requests: 'days',
    namesInstruments: true,
  },
  pledge: {
    operation: 'GetConsolidatedPledge',
    tables: [
      {
        name: 'consolidated_pledge',
        dated: true,
        lists: 'days',
        columns: ['trade_date', 'scrip_id', 'company_name'],
      },
      {
        name: 'corporate_actions',
        dated: false,
        lists: 'none',
        columns: [`'-'`, `'S' || scrip_code - 1`, 'company_name'],
      },
    ],
    mayBeEmpty: true,
    requests: 'days',
    namesInstruments: true,
  },
  categories: {
    operation: 'GetCorporateActionsCategories',
    tables: [
      {
        name: 'corporate_action_categories',
        dated: false,
        lists: 'exchange',
        columns: [`'-'`, 'purpose_code', 'corporate_action_type'],
      },
    ],
    mayBeEmpty: false,
    requests: 'once',
    namesInstruments: false,
  },
  ratios: {
    operation: 'GetFinRatioEOD',
    tables: [
      {
        name: 'financial_ratios',
        dated: false,
        lists: 'none',
        columns: ['as_of_date', `symbol || '/' || nature_of_report`, `'V' || eps`],
      },
    ],
    mayBeEmpty: true,
    requests: 'instrument',
    namesInstruments: true,
  },
} as const satisfies Record<string, KindOfResponse>;
export type Kind = keyof typeof KINDS;
export const kindOf = (kind: Kind): KindOfResponse => KINDS[kind];

/** A record of a response. Days and symbols are numbers, of DAYS and of `S0` and following. */
export type Sent =
  | {
      readonly type: 'row';
      /** Which of the kind's tables it belongs to. */
      readonly table: number;
      readonly day: number;
      readonly symbol: number;
      readonly value: number;
      readonly saved: number;
    }
  /** A record of no known shape. */
  | { readonly type: 'unknown'; readonly symbol: number }
  /** A record with a value that cannot be read. */
  | { readonly type: 'broken'; readonly day: number; readonly symbol: number }
  /** A record of a day that was not requested. */
  | { readonly type: 'stray'; readonly symbol: number };

/** A response, and what was requested. */
export interface Response {
  readonly kind: Kind;
  readonly call: number;
  /** Minutes after the time of the call. Several responses may come in one millisecond. */
  readonly minute: number;
  readonly from: number;
  readonly to: number;
  readonly part: 'full' | 'filtered' | 'instruments';
  /** Which of the entries about an instrument. */
  readonly nature: 'Standalone' | 'Consolidated';
  readonly symbols: readonly number[];
  readonly sent: readonly Sent[];
}

export const calledAt = ({ call, minute }: Response) => (CALLS[call]?.at ?? 0) + minute * 60_000;
export const calledOn = ({ call }: Response) => CALLS[call]?.calledOn ?? '';

/** What was requested, as the pipeline says it. */
export function entryOf(response: Response) {
  const { kind, from, to, part, nature, symbols } = response;
  const { operation, requests } = kindOf(kind);
  const once = requests === 'once';
  const filter = operationNamed(operation).request.options.find(({ isFilter }) => isFilter);
  const params: Record<string, string> =
    requests === 'instrument'
      ? { variant: 'eod', natureOfReport: nature }
      : part === 'filtered' && filter !== undefined
        ? { [filter.param]: 'Gainers' }
        : {};
  return {
    operation,
    from: once ? calledOn(response) : (DAYS[from] as string),
    to: once ? calledOn(response) : (DAYS[to] as string),
    instruments: part === 'instruments' ? symbols.map((symbol) => `S${symbol}`) : [],
    variant: requests === 'instrument' ? `eod/${nature}` : '',
    filtered: part === 'filtered',
    params,
  };
}

/** A record as the source sends it. */
export function recordOf(kind: Kind, sent: Sent): Record<string, unknown> {
  const { symbol } = sent;
  if (sent.type === 'unknown') return { Unknown: symbol };
  const [year, month, day] = (sent.type === 'stray' ? OTHER_DAY : (DAYS[sent.day] as string)).split('-');
  const onDay = `${month}-${day}-${year}`;
  const row = sent.type === 'row' ? sent : { table: 0, value: 0, saved: 0 };
  const saved = SAVED[row.saved] ?? 0;
  const name = `S${symbol}`;
  const text = `V${row.value}`;
  const times = saved === 0 ? {} : { SavedAt: indianTime(saved) };
  const unread = sent.type === 'broken' ? 'unread' : 1;
  switch (kind) {
    case 'bhav':
      return {
        TradDt: onDay,
        Symbol: name,
        SctySrs: 'EQ',
        FinInstrmNm: text,
        ClosePrice: unread,
        ...times,
      };
    case 'gainers':
      return {
        Date: onDay,
        ScripCode: symbol + 1,
        IsLoser: symbol % 2 === 1,
        ScripName: text,
        CurrentClosing: unread,
        ...times,
      };
    case 'changes':
      return {
        ChangeDate: onDay,
        ScripId: sent.type === 'broken' ? '' : name,
        ScripName: text,
        PrevSeries: 'EQ',
        ToSeries: 'BE',
        ...times,
      };
    case 'pledge':
      return row.table === 1
        ? { ScripCode: symbol + 1, ActionId: `A${symbol}`, CompanyName: text, ...times }
        : {
            ScripCode: symbol + 1,
            ScripId: name,
            TradeDate: onDay,
            CompanyName: text,
            TotalIssuedShares: unread,
            ...times,
          };
    case 'categories':
      return { CorporateActiontype: text, PurposeCode: name, ...times };
    case 'ratios':
      return {
        ...(operationNamed('GetFinRatioEOD').sample.response as Record<string, unknown>),
        EPS: sent.type === 'broken' ? 'unread' : row.value,
        ...times,
      };
  }
}

export function bodyOf({ kind, sent }: Response): Buffer {
  return Buffer.from(JSON.stringify({ Value: sent.map((record) => recordOf(kind, record)) }));
}

/** A moment as the source would write it. */
function indianTime(moment: number): string {
  const [date = '', time] = new Date(moment + 5.5 * 3_600_000).toISOString().slice(0, 19).split('T');
  const [year, month, day] = date.split('-');
  return `${month}-${day}-${year} ${time}`;
}

/** What responses are ordered by: the time of the call, then what was requested, then the body. */
function orderOf(response: Response): string {
  const { operation, from, to, instruments, variant, filtered } = entryOf(response);
  const hash = createHash('sha256').update(bodyOf(response)).digest('hex');
  const at = new Date(calledAt(response)).toISOString();
  return JSON.stringify([at, operation, from, to, instruments.join(), variant, filtered, hash]);
}

/**
 * Responses with their positions: of two, the greater one is the later. No two share one, except the same response.
 *
 * @param shift milliseconds, less than a minute, so that different sets have different positions.
 */
export function positionsOf(responses: readonly Response[], shift = 0): ReadonlyMap<Response, string> {
  const orders = new Map(responses.map((response) => [response, orderOf(response)]));
  const sorted = [...new Set(orders.values())].sort();
  return new Map(
    responses.map((response) => {
      const order = orders.get(response) as string;
      const at = new Date(calledAt(response)).toISOString();
      const rank = sorted.filter((other) => other.startsWith(`["${at}"`) && other < order).length;
      const placed = new Date(calledAt(response) + (shift % 60_000)).toISOString();
      return [response, placed.replace('Z', `${String(rank).padStart(3, '0')}Z`)];
    }),
  );
}
