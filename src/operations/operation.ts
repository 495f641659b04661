import type { Config } from '../core/config.ts';
import type { AskedFor } from './fields.ts';
import type { TableDefinition } from './table.ts';

export const EXCHANGES = ['BSE', 'NSE'] as const;
export type Exchange = (typeof EXCHANGES)[number];

/** A request option that a person may set, beside dates and instruments. */
export interface RequestOption {
  /** The source's parameter name. */
  readonly param: string;
  readonly meaning: string;
  /** Sent when the option is not set; undefined: the request goes without it. */
  readonly fallback?: string;
  /** Allowed values, where they are known. A person may write them in any case. */
  readonly values?: readonly string[];
  /** How a value must look, where the values cannot be listed. */
  readonly form?: {
    /** A regular expression that the whole value must match; text, so that it can be printed as JSON. */
    readonly pattern: string;
    /** The same for people, e.g. `four digits`. */
    readonly description: string;
  };
  /**
   * Does it narrow the answer? Then the answer is not the full set of its day and does not count as
   * coverage.
   */
  readonly filters: boolean;
}

/** The value in the source's spelling (known values match in any case), or null where the option does not allow it. */
export function spelledOption({ values, form }: RequestOption, value: string): string | null {
  if (values !== undefined) {
    return values.find((one) => one.toLowerCase() === value.toLowerCase()) ?? null;
  }
  return form === undefined || new RegExp(`^(?:${form.pattern})$`).test(value) ? value : null;
}

/** What an option allows, in words: `H, L` or `a year such as 2024`; null where it allows anything. */
export function allowedText({ values, form }: RequestOption): string | null {
  return values?.join(', ') ?? form?.description ?? null;
}

/** Which parameters a request carries, besides `accessKey`, `exchange` and `format`. */
interface RequestShape {
  /** `range`: from and to; `day`: date; `none`: the operation knows no dates. */
  readonly dates: 'range' | 'day' | 'none';
  /** Where only some requests of the operation carry the date: which ones. */
  readonly datedWhen?: (params: Readonly<Record<string, string>>) => boolean;
  /** `many`: instrumentIdentifiers (25 at most); `one`: instrumentIdentifier. */
  readonly instruments: 'many' | 'one' | 'none';
  /** Does it take `dTFormat`? */
  readonly dTFormat: boolean;
  readonly options: readonly RequestOption[];
}

/** One of the record shapes an operation may answer with, and the table it belongs to. */
export interface Shape {
  readonly table: TableDefinition;
  /** A record is of this shape if it has all of these source fields … */
  readonly has: readonly string[];
  /** … and, where given, at least one of these. */
  readonly hasOneOf?: readonly string[];
  /** At least one of these source fields must name the instrument, or the record is rejected. */
  readonly namedBy?: readonly string[];
  /** Column that holds the symbol asked for, so that coverage can go instrument by instrument. */
  readonly symbolColumn?: string;
  /**
   * Do records carry the session day they were asked for, so that coverage can go day by day? Then one of a
   * day that was not asked for is rejected.
   */
  readonly dated: boolean;
  /** Column in which records name their exchange: one of another exchange is rejected. */
  readonly exchangeColumn?: string;
  /**
   * What an answer without instruments and narrowing options lists in full: the days asked for, all the
   * exchange has, or nothing in particular. Rows that it no longer lists are withdrawn.
   */
  readonly fullSet: 'days' | 'exchange' | 'none';
}

/** One question for one instrument, for operations that ask per instrument. */
export interface Ask {
  /** Names the question in the coverage of a day, e.g. `eod/Standalone`; '' where there is only one. */
  readonly variant: string;
  readonly from: string;
  readonly to: string;
  readonly params: Readonly<Record<string, string>>;
  /** Asked again even where an earlier answer covers it. */
  readonly always?: boolean;
}

export interface AskInput {
  /** Sessions of the exchange inside the asked range, ascending. */
  readonly sessions: readonly string[];
  readonly from: string;
  readonly to: string;
  /** Today in the source's zone. */
  readonly today: string;
  /** Is this a nightly run of today? Only then are real-time figures worth a request. */
  readonly live: boolean;
  /** Request options set by hand, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
}

/**
 * How long the figures of a quarter are awaited after its end: as long as the next one lasts. Until then an
 * answer without them is not believed.
 */
export const QUARTER_AWAITED_DAYS = 92;

/** How a date range becomes request windows. */
type WindowPolicy =
  /** Several calendar days a window. `everyDay`: records may carry days that are no session. */
  | { readonly per: 'range'; readonly days: number; readonly everyDay: boolean }
  /** One session a window. */
  | { readonly per: 'session' }
  /** No dates: once a run. */
  | { readonly per: 'once' }
  /**
   * Per instrument, the questions the operation itself lists. `days`: which days should be there: sessions,
   * last days of quarters, or none in particular.
   */
  | {
      readonly per: 'instrument';
      readonly days: 'sessions' | 'quarters' | 'none';
      readonly asks: (input: AskInput) => readonly Ask[];
    };

export interface Schedule {
  /** `HH:mm` in the source's zone, for the first exchange; further exchanges follow minutes later. */
  readonly at: string;
  /** Every day, or the weekday of a weekly operation. */
  readonly on: 'daily' | 'friday' | 'saturday' | 'sunday';
  /** Are the last EOD_LOOKBACK_SESSIONS sessions asked again, for late corrections? */
  readonly lookback: boolean;
}

/** Records of one kind and the tables they fill, whether they are asked for or read from files. */
export interface DataSet {
  readonly name: string;
  readonly summary: string;
  /** Tried in order; the first that fits takes the record. */
  readonly shapes: readonly [Shape, ...Shape[]];
  /** Tables that some of its files fill besides; an answer of the source says nothing of them. */
  readonly alsoInFiles?: readonly TableDefinition[];
  /** `file`: nothing is asked for; records come with imported files, or follow from what is stored. */
  readonly windows: WindowPolicy | { readonly per: 'file' };
  /** Is a session without records normal, once nothing more is expected of it, or a sign that data is missing? */
  readonly emptyIsNormal: boolean;
}

/** A data set that the source service is asked for. */
export interface Operation extends DataSet {
  readonly windows: WindowPolicy;
  /** Exchanges asked when the user names none. */
  readonly exchanges: readonly Exchange[];
  readonly request: RequestShape;
  /** `HH:mm` in the source's zone: the day's data can be expected from then on. An empty answer before says nothing. */
  readonly publishedAt: string;
  readonly schedule: Schedule;
  /** An answer as the service gives it, and the request it answers. */
  readonly sample: { readonly asked: Omit<AskedFor, 'calledOn'>; readonly answer: unknown };
}

/** When the data of a day can be expected: the operation's own time, or the setting EOD_PUBLISHED_AT where that is later. */
export function publicationTime({ publishedAt }: Operation, earliest: string): string {
  return publishedAt > earliest ? publishedAt : earliest;
}

/** Is it the last days of quarters that should be there of it? */
export function isQuarterly({ windows }: Operation): boolean {
  return windows.per === 'instrument' && windows.days === 'quarters';
}

/**
 * Which questions an operation has for each day that should be there, by their variants; null where no day
 * should: it knows no dates.
 */
export function expectedVariants({ windows }: Operation): string[] | null {
  if (windows.per === 'once' || (windows.per === 'instrument' && windows.days === 'none')) return null;
  if (windows.per !== 'instrument') return [''];
  // A quarter's last day that was a session too.
  const day = '2025-03-31';
  const asked = { sessions: [day], from: day, to: day, today: day, live: false, options: {} };
  return windows.asks(asked).map(({ variant }) => variant);
}

/** The service takes at most this many symbols in one instrumentIdentifiers value. */
export const MAX_INSTRUMENTS_PER_CALL = 25;

/** Returns the operation as it is; gives the literal of an operation file its type. */
export function defineOperation(operation: Operation): Operation {
  return operation;
}

/** Returns the data set as it is; gives the literal of its file its type. */
export function defineFileSet(dataSet: Omit<DataSet, 'windows' | 'emptyIsNormal'>): DataSet {
  return { ...dataSet, windows: { per: 'file' }, emptyIsNormal: true };
}

/** All tables that its records fill. */
export function tablesFilledBy({ shapes, alsoInFiles = [] }: DataSet): TableDefinition[] {
  return [...shapes.map(({ table }) => table), ...alsoInFiles];
}

/** Names of the other data sets whose files fill a table of one of these besides. */
export function toldInFilesOf(dataSets: readonly DataSet[], names: readonly string[]): string[] {
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

/** Is it asked of the source service? */
export function isOperation(dataSet: DataSet): dataSet is Operation {
  return 'request' in dataSet;
}

/** Exchanges an operation is asked of when nobody names any: its own, as far as EOD_EXCHANGES allows. */
export function exchangesOf(operation: Operation, config: Pick<Config, 'EOD_EXCHANGES'>): readonly string[] {
  return operation.exchanges.filter((exchange) => config.EOD_EXCHANGES.includes(exchange));
}
