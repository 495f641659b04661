import type { Config } from '../core/config.ts';
import type { DayRange } from '../core/days.ts';
import type { AskedFor } from './fields.ts';
import type { Row, TableDefinition } from './table.ts';

export const EXCHANGES = ['BSE', 'NSE'] as const;
export type Exchange = (typeof EXCHANGES)[number];

/** Spellings of the exchanges in records, besides their own: with an X before it, and BSE's market identifier code. */
const EXCHANGE_SPELLINGS: Readonly<Record<string, Exchange>> = { XBSE: 'BSE', XBOM: 'BSE', XNSE: 'NSE' };

/** Does a record name another known exchange than the one that was asked? An unknown spelling proves nothing. */
export function strayExchange(named: unknown, { exchange }: Pick<AskedFor, 'exchange'>): boolean {
  if (typeof named !== 'string') return false;
  const spelled = named.trim().toUpperCase();
  const known = EXCHANGE_SPELLINGS[spelled] ?? EXCHANGES.find((one) => one === spelled);
  return known !== undefined && known !== exchange;
}

/** The operation whose data shows which days were sessions, and which instruments there are. */
export const BHAV_COPY = 'GetBhavCopyCM';

/** A request option that users can set, besides dates and instruments. */
export interface RequestOption {
  /** The source's parameter name. */
  readonly param: string;
  readonly meaning: string;
  /** The value that is sent when the option is not set; undefined: the request has no such parameter. */
  readonly fallback?: string;
  /** Values that are known. Users may write them in upper or lower case. Others are sent as they are … */
  readonly values?: readonly string[];
  /** … unless these are all that there are. */
  readonly closed?: boolean;
  /** The format of a value, if the values cannot be listed. */
  readonly form?: {
    /** A regular expression that the whole value must match; a string, so that it can be printed as JSON. */
    readonly pattern: string;
    /** The format in words, e.g. `four digits`. */
    readonly description: string;
  };
  /** Does it narrow the answer? Then the answer does not list its day in full and does not count as coverage. */
  readonly filters: boolean;
}

/** The value as the source spells it (in any case), or as it is where any is known; null if it is not a known one. */
export function knownOption({ values, form }: RequestOption, value: string): string | null {
  if (values !== undefined) {
    return values.find((one) => one.toLowerCase() === value.toLowerCase()) ?? null;
  }
  return form === undefined || new RegExp(`^(?:${form.pattern})$`).test(value) ? value : null;
}

/** The same, but other values than the known ones are sent as they are, unless the option is closed. */
export function spelledOption(option: RequestOption, value: string): string | null {
  const isOpen = option.values !== undefined && option.closed !== true;
  return knownOption(option, value) ?? (isOpen ? value : null);
}

/** The values of an option, in words: `H, L, …` or `a year such as 2024`; null if any value is as good. */
export function allowedText({ values, closed, form }: RequestOption): string | null {
  const others = closed === true ? [] : ['…'];
  return values === undefined ? (form?.description ?? null) : [...values, ...others].join(', ');
}

/** Begins the name of a parameter in a window that is sent as it is, because its operation does not declare it. */
const FURTHER = 'param:';

/** The name under which a parameter that no operation declares is kept with a window. */
export const furtherParam = (name: string): string => `${FURTHER}${name}`;

/** The parameters that are sent as they are, by the source's name. */
export function furtherParams(params: Readonly<Record<string, string>>): [name: string, value: string][] {
  return Object.entries(params)
    .filter(([name]) => name.startsWith(FURTHER))
    .map(([name, value]) => [name.slice(FURTHER.length), value]);
}

/** The parameters of a request, besides `accessKey`, `exchange` and `format`. */
interface RequestShape {
  /** `range`: from and to; `day`: date; `none`: the operation takes no dates. */
  readonly dates: 'range' | 'day' | 'none';
  /** Set if only some requests of the operation have the date: does this one? */
  readonly datedWhen?: (asked: Pick<AskedFor, 'params' | 'instruments'>) => boolean;
  /** `many`: instrumentIdentifiers (25 at most); `one`: instrumentIdentifier. */
  readonly instruments: 'many' | 'one' | 'none';
  /** Does it take `dTFormat`? */
  readonly dTFormat: boolean;
  readonly options: readonly RequestOption[];
}

/** One of the record shapes that an operation may answer with, and the table it is stored in. */
export interface Shape {
  readonly table: TableDefinition;
  /** A record has this shape if it has all of these source fields … */
  readonly has: readonly string[];
  /** … and, if set, at least one of these. */
  readonly hasOneOf?: readonly string[];
  /** At least one of these source fields must name the instrument, or the record is rejected. */
  readonly namedBy?: readonly string[];
  /** Column with the requested symbol, if coverage can be recorded for each instrument. */
  readonly symbolColumn?: string;
  /**
   * Do records have the session day that was asked for, so that coverage can be recorded day by day? Then a record of
   * any other day is rejected.
   */
  readonly dated: boolean;
  /** What a row says that contradicts the request; then the record is rejected. Null if nothing does. */
  readonly contradiction?: (
    row: Row,
    asked: AskedFor,
  ) => { readonly column: string; readonly message: string } | null;
  /** Column with the exchange of a record: a record of another known exchange is rejected. */
  readonly exchangeColumn?: string;
  /**
   * What an answer to a request without instruments and filters lists in full: the requested days, everything that
   * the exchange has, or nothing in particular. Stored rows that such an answer no longer lists are withdrawn.
   */
  readonly fullSet: 'days' | 'exchange' | 'none';
}

/** One question for one instrument, for operations that ask per instrument. */
export interface Question extends DayRange {
  /** Identifies the question in the coverage of a day, e.g. `eod/Standalone`; '' if there is only one. */
  readonly variant: string;
  readonly params: Readonly<Record<string, string>>;
  /** Is it asked even if an earlier answer covers it? */
  readonly always?: boolean;
}

export interface QuestionInput extends DayRange {
  /** Sessions of the exchange from `from` to `to`, ascending. */
  readonly sessions: readonly string[];
  /** Today in the source's zone. */
  readonly today: string;
  /** Is this today's nightly run? Only then are real-time figures worth a request. */
  readonly live: boolean;
  /** Request options that the user has set, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
}

/**
 * How long after the end of a quarter its figures may still come, in days: about the length of the next quarter. Until
 * then an empty answer does not mean that there are none.
 */
export const QUARTER_AWAITED_DAYS = 92;

/**
 * Questions without dates whose answers together list everything that an exchange has: one for each value of a request
 * option. A value that is found in an answer is asked for too.
 */
export interface Parts {
  /** The source's parameter name. */
  readonly param: string;
  /** The values that are known; values of the source are compared with them without regard to case. */
  readonly values: readonly string[];
  /** The column that has the value in the rows. */
  readonly column: string;
}

/** How a date range is divided into windows, of which each is one request. */
type WindowPolicy =
  /**
   * Up to `days` calendar days a window. `everyDay`: records may be of days that are not sessions. `parts`: an answer
   * about days may list only what has changed on them; every run also asks for each part, once a day. `ahead`: records
   * may be of days to come; a nightly run also asks for this many days after it.
   */
  | {
      readonly per: 'range';
      readonly days: number;
      readonly everyDay: boolean;
      readonly parts?: Parts;
      readonly ahead?: number;
    }
  /** One session a window. */
  | { readonly per: 'session' }
  /** One window a run, without dates. */
  | { readonly per: 'once' }
  /**
   * One window for each instrument and question. `days`: the days for which data is expected: sessions, last days of
   * quarters, or none in particular.
   */
  | {
      readonly per: 'instrument';
      readonly days: 'sessions' | 'quarters' | 'none';
      readonly questions: (input: QuestionInput) => readonly Question[];
    }
  /**
   * Nothing is requested: the records come from imported files or are computed from stored data. As nobody asks for
   * them, they have no coverage.
   */
  | { readonly per: 'file' };

export interface Schedule {
  /** `HH:mm` in the source's zone, for the first exchange; the others follow a few minutes later. */
  readonly at: string;
  /** Every day, or the weekday of a weekly operation. */
  readonly on: 'daily' | 'friday' | 'saturday' | 'sunday';
  /** Are the last EOD_LOOKBACK_SESSIONS sessions asked for again, to get late corrections? */
  readonly lookback: boolean;
}

/** The weekday on which a schedule asks, as in `weekday` of core/days.ts; null: every day. */
export const SCHEDULED_WEEKDAYS: Readonly<Record<Schedule['on'], number | null>> = {
  daily: null,
  sunday: 0,
  friday: 5,
  saturday: 6,
};

/** Records of one kind and the tables they are stored in, whether they are requested or read from files. */
export interface DataSet {
  readonly name: string;
  readonly summary: string;
  /** A record is stored by the shape that reads most of its fields, of those it has. */
  readonly shapes: readonly [Shape, ...Shape[]];
  /** Further tables that some imported files fill; answers of the source have no data for them. */
  readonly alsoInFiles?: readonly TableDefinition[];
  /** Exchanges it is requested for when the user names none. */
  readonly exchanges: readonly Exchange[];
  readonly request: RequestShape;
  readonly windows: WindowPolicy;
  /** `HH:mm` in the source's zone, when the day's data can be expected. An earlier empty answer means nothing. */
  readonly publishedAt: string;
  /** Null if nothing is requested. */
  readonly schedule: Schedule | null;
  /** Is it normal that a session has no records? If not, data is missing. */
  readonly emptyIsNormal: boolean;
  /** An example of a request and of the service's answer to it; null if nothing is requested. */
  readonly sample: { readonly asked: Omit<AskedFor, 'calledOn'>; readonly answer: unknown } | null;
}

/** A data set that is requested from the source service. */
export interface Operation extends DataSet {
  readonly windows: Exclude<WindowPolicy, { readonly per: 'file' }>;
  readonly schedule: Schedule;
  readonly sample: NonNullable<DataSet['sample']>;
  /**
   * The operation that answers the same questions, with these parameters, if the source does not offer this one any
   * more. It must know the same shapes.
   */
  readonly instead?: { readonly operation: string; readonly params: Readonly<Record<string, string>> };
}

/** When the data of a day can be expected: the operation's own time, or EOD_PUBLISHED_AT if that is later. `HH:mm`. */
export function publicationTime({ publishedAt }: DataSet, earliest: string): string {
  return publishedAt > earliest ? publishedAt : earliest;
}

/** Is its data expected for the last days of quarters, not for sessions? */
export function isQuarterly({ windows }: Operation): boolean {
  return windows.per === 'instrument' && windows.days === 'quarters';
}

/** The questions without dates that it asks instead of, or besides, those about days; undefined if there are none. */
export function partsOf({ windows }: Pick<DataSet, 'windows'>): Parts | undefined {
  return windows.per === 'range' ? windows.parts : undefined;
}

/** The variant of the question about a part. */
export const partVariant = ({ param }: Parts, value: string): string => `${param}/${value}`;

/** The variant of the question about days to come. */
export const AHEAD = 'ahead';

/** Is this the variant of a question about a part? */
export function isPart(dataSet: Pick<DataSet, 'windows'>, variant: string): boolean {
  const parts = partsOf(dataSet);
  return parts !== undefined && variant.startsWith(partVariant(parts, ''));
}

/** Is this request sent with its days? */
export function isDated({ request }: Operation, asked: Pick<AskedFor, 'params' | 'instruments'>): boolean {
  return request.dates !== 'none' && (request.datedWhen?.(asked) ?? true);
}

/** The variants of the questions about each day for which data is expected; null if none is expected for any day. */
export function expectedVariants(operation: Operation): string[] | null {
  const { windows } = operation;
  if (windows.per === 'once' || (windows.per === 'instrument' && windows.days === 'none')) return null;
  // What is expected is the whole list, whatever has changed on single days.
  if (partsOf(operation) !== undefined) return null;
  if (windows.per !== 'instrument') return [''];
  // The last day of a quarter, and also a session.
  const day = '2025-03-31';
  const asked = { sessions: [day], from: day, to: day, today: day, live: false, options: {} };
  return windows.questions(asked).map(({ variant }) => variant);
}

/** The service takes at most this many symbols in `instrumentIdentifiers`. */
export const MAX_INSTRUMENTS_PER_CALL = 25;

/** Returns the operation unchanged; declares the type of the literal. */
export function defineOperation(operation: Operation): Operation {
  return operation;
}

/** Declares a data set that is not requested from the source. A file is about a range of days and lists all it has. */
export function defineFileSet(dataSet: Pick<DataSet, 'name' | 'summary' | 'shapes'>): DataSet {
  return {
    ...dataSet,
    exchanges: [],
    request: { dates: 'range', instruments: 'none', dTFormat: false, options: [] },
    windows: { per: 'file' },
    publishedAt: '00:00',
    schedule: null,
    emptyIsNormal: true,
    sample: null,
  };
}

/** All tables in which its records are stored. */
export function tablesFilledBy({ shapes, alsoInFiles = [] }: DataSet): TableDefinition[] {
  return [...shapes.map(({ table }) => table), ...alsoInFiles];
}

/** Names of other data sets with files that also fill a table of the named ones (`alsoInFiles`). */
export function dataSetsAlsoFilling(dataSets: readonly DataSet[], names: readonly string[]): string[] {
  const filled = dataSets
    .filter(({ name }) => names.includes(name))
    .flatMap(({ shapes }) => shapes.map(({ table }) => table));
  return dataSets
    .filter(
      ({ name, alsoInFiles = [] }) =>
        !names.includes(name) && alsoInFiles.some((one) => filled.includes(one)),
    )
    .map(({ name }) => name);
}

/** The settings that say which exchanges are asked for. */
export type ExchangeSettings = Pick<Config, 'EOD_EXCHANGES'> &
  Partial<Pick<Config, 'EOD_OPERATION_EXCHANGES'>>;

/**
 * The exchanges an operation is requested for when the user names none: those of EOD_OPERATION_EXCHANGES, or its own,
 * limited to EOD_EXCHANGES.
 */
export function exchangesOf(operation: Operation, config: ExchangeSettings): readonly string[] {
  const named = config.EOD_OPERATION_EXCHANGES?.[operation.name];
  if (named !== undefined) return named;
  return operation.exchanges.filter((exchange) => config.EOD_EXCHANGES.includes(exchange));
}
