import type { Config } from '../core/config.ts';
import type { DayRange } from '../core/days.ts';
import { exchangeOfSegment } from '../core/exchanges.ts';
import type { Requested } from './fields.ts';
import type { Row, TableDefinition, TableReading } from './table.ts';

/** The operation whose data shows which days were sessions, and which instruments there are. */
export const BHAV_COPY = 'GetBhavCopyCM';

/** The request for what the key may do. It fills no table, so it is not declared as an operation. */
export const LIMITATION = 'GetLimitation';

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
  readonly isClosed?: boolean;
  /** The format of a value, if the values cannot be listed. */
  readonly form?: {
    /** A regular expression that the whole value must match; a string, so that it can be printed as JSON. */
    readonly pattern: string;
    /** The format in words, e.g. `four digits`. */
    readonly description: string;
  };
  /**
   * True if it narrows the response. Then the response does not list its day in full and gives no coverage.
   */
  readonly isFilter: boolean;
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
  const isOpen = option.values !== undefined && option.isClosed !== true;
  return knownOption(option, value) ?? (isOpen ? value : null);
}

/** The values of an option, in words: `H, L, …` or `a year such as 2024`; null if any value is as good. */
export function allowedText({ values, isClosed, form }: RequestOption): string | null {
  const others = isClosed === true ? [] : ['…'];
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

/** Days that a request can name, relative to the day of the call: `{ value: 'Previous7days', from: -7, to: 0 }`. */
export interface NamedSpan {
  /** The value of the parameter `range`. */
  readonly value: string;
  readonly from: number;
  readonly to: number;
}

/** The parameters of a request, besides `accessKey`, `exchange` and `format`. */
interface RequestShape {
  /**
   * `range`: from and to as moments; `years`: from and to as the years of the range; `day`: date; `spans`: range, the
   * name of the shortest of `spans` that contains the days requested; `none`: the operation takes no dates.
   */
  readonly dates: 'range' | 'years' | 'day' | 'spans' | 'none';
  /** The named spans that the operation knows, for `dates: 'spans'`. Older days cannot be requested. */
  readonly spans?: readonly NamedSpan[];
  /**
   * For `dates: 'years'`: how many years before those of the range are requested too, as their records may still come.
   */
  readonly yearsBefore?: number;
  /** Parameters that every request has, by the source's name. */
  readonly fixed?: Readonly<Record<string, string>>;
  /** Set if only some requests of the operation have the date: true for these. */
  readonly datedWhen?: (requested: Pick<Requested, 'params' | 'instruments'>) => boolean;
  /** `many`: instrumentIdentifiers (25 at most); `one`: instrumentIdentifier. */
  readonly instruments: 'many' | 'one' | 'none';
  /** True if it takes `dTFormat`. A text is the name of the parameter, where the source spells it otherwise. */
  readonly dTFormat: boolean | string;
  readonly options: readonly RequestOption[];
}

/** One of the record shapes that an operation may respond with, and the table it is stored in. */
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
   * True if records have the session day that was requested, so that coverage can be recorded day by day. Then a record
   * of any other day is rejected.
   */
  readonly dated: boolean;
  /** What a row says that contradicts the request; then the record is rejected. Null if nothing does. */
  readonly contradiction?: (
    row: Row,
    requested: Requested,
  ) => { readonly column: string; readonly message: string } | null;
  /** Column with the exchange of a record: a record of another known exchange is rejected. */
  readonly exchangeColumn?: string;
  /**
   * What a response to a request without instruments and filters lists in full: the requested days, everything that
   * the exchange has, or nothing in particular. Stored rows that such a response no longer lists are withdrawn.
   */
  readonly fullSet: 'days' | 'exchange' | 'none';
}

/** One request for one instrument, for operations that request data per instrument. */
export interface InstrumentRequest extends DayRange {
  /** Identifies the request in the coverage of a day, e.g. `eod/Standalone`; '' if there is only one. */
  readonly variant: string;
  readonly params: Readonly<Record<string, string>>;
  /** True if it is requested even if an earlier response covers it. */
  readonly always?: boolean;
}

export interface RequestInput extends DayRange {
  /** Sessions of the exchange from `from` to `to`, ascending. */
  readonly sessions: readonly string[];
  /** Today in the source's zone. */
  readonly today: string;
  /** True for today's nightly run. Only then are real-time figures worth a request. */
  readonly live: boolean;
  /** Request options that the user has set, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
}

/**
 * How long after the end of a quarter its figures may still come, in days: about the length of the next quarter. Until
 * then an empty response does not mean that there are none.
 */
export const QUARTER_AWAITED_DAYS = 92;

/**
 * Requests without dates whose responses together list everything that an exchange has: one for each value of a request
 * option. A value that is found in a response is requested too.
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
   * Up to `days` calendar days a window. `everyDay`: records may be of days that are not sessions. `parts`: a response
   * about days may list only what has changed on them; every run also requests each part, once a day. `ahead`: records
   * may be of days to come; a nightly run also requests this many days after it.
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
  /**
   * One window a run, without dates; with `requests` one for each of these values of options, by the day of the call,
   * unless the user sets them.
   */
  | {
      readonly per: 'once';
      readonly requests?: (today: string) => readonly Readonly<Record<string, string>>[];
    }
  /**
   * One window for each instrument and request. `days`: the days for which data is expected: sessions, last days of
   * quarters, or none in particular.
   */
  | {
      readonly per: 'instrument';
      readonly days: 'sessions' | 'quarters' | 'none';
      readonly requests: (input: RequestInput) => readonly InstrumentRequest[];
    }
  /**
   * One window for each stored row of another operation, which lists what can be requested: a statement, a filing. A
   * row is requested once, and again when it changes.
   */
  | {
      readonly per: 'row';
      /** The operation whose first table has the rows. */
      readonly of: string;
      /** The column of those rows that names the instrument. */
      readonly instrument: string;
      /** The columns of those rows that give the parameters of a request, by the source's parameter name. */
      readonly params: Readonly<Record<string, string>>;
      /** The column of those rows with the day that is sent as `date`, if the operation takes one. */
      readonly day?: string;
    }
  /**
   * Nothing is requested: the records come from imported files or are computed from stored data. They are
   * never requested, so they have no coverage.
   */
  | { readonly per: 'file' };

export interface Schedule {
  /** `HH:mm` in the source's zone, for the first exchange; the others follow a few minutes later. */
  readonly at: string;
  /** Every day, or the weekday of a weekly operation. */
  readonly on: 'daily' | 'friday' | 'saturday' | 'sunday';
  /** True if the last EOD_LOOKBACK_SESSIONS sessions are requested again, to get late corrections. */
  readonly hasLookback: boolean;
  /** True if its instruments are spread over the week, so that each night requests a seventh of them. */
  readonly spread?: 'week';
  /**
   * What its windows are worth where not all of a night's fit: prices come before lists of whole exchanges, and these
   * before details of single instruments. By default details if it is about instruments, and lists otherwise.
   */
  readonly value?: ScheduleValue;
}

export type ScheduleValue = 'prices' | 'lists' | 'details';

/** The weekday on which a schedule requests, as in `weekday` of core/days.ts; null: every day. */
export const SCHEDULED_WEEKDAYS: Readonly<Record<Schedule['on'], number | null>> = {
  daily: null,
  sunday: 0,
  friday: 5,
  saturday: 6,
};

/** The groups in which data sets are listed, in their order. */
export const GROUPS = [
  'prices',
  'trading',
  'corporate actions',
  'fundamentals',
  'ownership',
  'reference',
] as const;

type Group = (typeof GROUPS)[number];

/** Records of one kind and the tables they are stored in, whether they are requested or read from files. */
export interface DataSet {
  readonly name: string;
  /** What it is called where its table is named beside it: a plural of a few words. By default that name in words. */
  readonly title?: string;
  readonly group?: Group;
  readonly summary: string;
  /**
   * A record is stored by the shape that reads most of its fields, of those it has. The first has the table by which
   * the data set is known.
   */
  readonly shapes: readonly [Shape, ...Shape[]];
  /**
   * The exchanges' UDiFF files that have its records: those of a segment. `exchanges` says of which exchange their rows
   * are, by the exchange that they name.
   */
  readonly udiff?: { readonly segment: string; readonly exchanges: Readonly<Record<string, string>> };
  /** Further tables that some imported files fill; responses of the source have no data for them. */
  readonly alsoInFiles?: readonly TableDefinition[];
  /** A table of another data set that its responses fill besides: each record that is stored is a row there as well. */
  readonly also?: TableReading;
  /** Exchanges and segments (`BFO`, `BSE_IDX`) it is requested for when the user names none. */
  readonly exchanges: readonly string[];
  readonly request: RequestShape;
  readonly windows: WindowPolicy;
  /** The name of the list of records in the response, if it is not `Value`. */
  readonly envelope?: string;
  /** `HH:mm` in the source's zone, when the day's data can be expected. An earlier empty response means nothing. */
  readonly publishedAt: string;
  /** Null if nothing is requested. */
  readonly schedule: Schedule | null;
  /** True if it is normal that a session has no records. If not, data is missing. */
  readonly emptyIsNormal: boolean;
  /** An example of a request and of the service's response to it; null if nothing is requested. */
  readonly sample: { readonly requested: Omit<Requested, 'calledOn'>; readonly response: unknown } | null;
}

/** A data set that is requested from the source service. */
export interface Operation extends DataSet {
  readonly windows: Exclude<WindowPolicy, { readonly per: 'file' }>;
  readonly schedule: Schedule;
  readonly sample: NonNullable<DataSet['sample']>;
  /**
   * The operation that serves the same data, with these parameters, if the source does not offer this one any
   * more. It must know the same shapes.
   */
  readonly instead?: { readonly operation: string; readonly params: Readonly<Record<string, string>> };
}

/** When the data of a day can be expected: the operation's own time, or EOD_PUBLISHED_AT if that is later. `HH:mm`. */
export function publicationTime({ publishedAt }: DataSet, earliest: string): string {
  return publishedAt > earliest ? publishedAt : earliest;
}

/** True if its data is expected for the last days of quarters, not for sessions. */
export function isQuarterly({ windows }: Operation): boolean {
  return windows.per === 'instrument' && windows.days === 'quarters';
}

/**
 * The requests without dates that it requests instead of, or besides, those about days; undefined if there are none.
 */
export function partsOf({ windows }: Pick<DataSet, 'windows'>): Parts | undefined {
  return windows.per === 'range' ? windows.parts : undefined;
}

/** The variant of the request about a part. */
export const partVariant = ({ param }: Parts, value: string): string => `${param}/${value}`;

/** The variant of the request about days to come. */
export const AHEAD = 'ahead';

/** True if this is the variant of a request about a part. */
export function isPart(dataSet: Pick<DataSet, 'windows'>, variant: string): boolean {
  const parts = partsOf(dataSet);
  return parts !== undefined && variant.startsWith(partVariant(parts, ''));
}

/** True if this request is sent with its days. */
export function isDated(
  { request }: Operation,
  requested: Pick<Requested, 'params' | 'instruments'>,
): boolean {
  return request.dates !== 'none' && (request.datedWhen?.(requested) ?? true);
}

/** True if each of its requests is about one or several instruments. */
export function isByInstrument({ windows }: Pick<DataSet, 'windows'>): boolean {
  return windows.per === 'instrument' || windows.per === 'row';
}

/** The parameters of a request that rows of another operation give and that are no options of users. */
export function rowParams({ windows, request }: Pick<DataSet, 'windows' | 'request'>): string[] {
  if (windows.per !== 'row') return [];
  return Object.keys(windows.params).filter((name) => request.options.every(({ param }) => param !== name));
}

/** The name of the parameter that says how dates are to be written; null if the operation has none. */
export function dateFormatParam({ request }: Pick<DataSet, 'request'>): string | null {
  if (request.dTFormat === true) return 'dTFormat';
  return request.dTFormat === false ? null : request.dTFormat;
}

/** The variants of the requests about each day for which data is expected; null if none is expected for any day. */
export function expectedVariants(operation: Operation): string[] | null {
  const { windows } = operation;
  if (windows.per === 'once' || windows.per === 'row') return null;
  if (windows.per === 'instrument' && windows.days === 'none') return null;
  // What is expected is the whole list, whatever has changed on single days.
  if (partsOf(operation) !== undefined) return null;
  if (windows.per !== 'instrument') return [''];
  return windows.requests(expectedDay()).map(({ variant }) => variant);
}

/** A day that is the last of a quarter, and also a session: what is requested for it stands for all days. */
export function expectedDay(): RequestInput {
  const day = '2025-03-31';
  return { sessions: [day], from: day, to: day, today: day, live: false, options: {} };
}

/** The service takes at most this many symbols in `instrumentIdentifiers`. */
export const MAX_INSTRUMENTS_PER_CALL = 25;

/** Returns the operation unchanged; declares the type of the literal. */
export function defineOperation(operation: Operation): Operation {
  return operation;
}

/** Declares a data set that is not requested from the source. A file is about a range of days and lists all it has. */
export function defineFileSet(
  dataSet: Pick<DataSet, 'name' | 'title' | 'group' | 'summary' | 'shapes'>,
): DataSet {
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

/** The tables in which the records of responses are stored. */
export function tablesOfResponses({ shapes, also }: DataSet): TableDefinition[] {
  return [...shapes.map(({ table }) => table), ...(also === undefined ? [] : [also.table])];
}

/** All tables in which its records are stored, also those of imported files. */
export function tablesFilledBy(dataSet: DataSet): TableDefinition[] {
  return [...tablesOfResponses(dataSet), ...(dataSet.alsoInFiles ?? [])];
}

/**
 * Names of other data sets that also fill a table of the named ones: with some of their files, or with all responses.
 */
export function dataSetsAlsoFilling(
  dataSets: readonly DataSet[],
  names: readonly string[],
): { readonly inFiles: string[]; readonly inResponses: string[] } {
  const filled = dataSets
    .filter(({ name }) => names.includes(name))
    .flatMap(({ shapes }) => shapes.map(({ table }) => table));
  const others = dataSets.filter(({ name }) => !names.includes(name));
  const namesOf = (tables: (dataSet: DataSet) => readonly TableDefinition[]) =>
    others.filter((one) => tables(one).some((table) => filled.includes(table))).map(({ name }) => name);
  return {
    inFiles: namesOf(({ alsoInFiles = [] }) => alsoInFiles),
    inResponses: namesOf(({ also }) => (also === undefined ? [] : [also.table])),
  };
}

/** What a setting for single operations says of one: under its name, or that of its first table, in any case. */
export function settingFor<Value>(
  values: Readonly<Record<string, Value>>,
  { name, shapes }: Pick<DataSet, 'name' | 'shapes'>,
): Value | undefined {
  const under = (wanted: string) =>
    Object.entries(values).find(([typed]) => typed.toLowerCase() === wanted.toLowerCase())?.[1];
  return under(name) ?? under(shapes[0].table.name);
}

/** The settings that say which exchanges are requested. */
export type ExchangeSettings = Pick<Config, 'EOD_EXCHANGES'> &
  Partial<Pick<Config, 'EOD_OPERATION_EXCHANGES'>>;

/**
 * The exchanges an operation is requested for when the user names none: those of EOD_OPERATION_EXCHANGES, or its own,
 * limited to EOD_EXCHANGES, where a segment is taken as the exchange that runs it.
 */
export function exchangesOf(operation: Operation, config: ExchangeSettings): readonly string[] {
  const named = settingFor(config.EOD_OPERATION_EXCHANGES ?? {}, operation);
  if (named !== undefined) return named;
  return operation.exchanges.filter((exchange) => config.EOD_EXCHANGES.includes(exchangeOfSegment(exchange)));
}
