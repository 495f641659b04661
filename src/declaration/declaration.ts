import type { Day, DayRange } from '../core/days.ts';
import type { GROUPS, Kind, SCHEDULED_WEEKDAYS, Scalar, ValueOf } from './declaration-values.ts';

// What a declaration of an operation or data set may say. The compiler checks most of it; test/operations checks the rest
// over all declarations.

/** What was requested; the source of values that the response does not have. */
export interface Requested extends DayRange {
  readonly exchange: string;
  readonly instruments: readonly string[];
  /** The options of the request, and what planning notes for reading its response: `variant`. */
  readonly params: Readonly<Record<string, string>>;
  /** Day of the call in the source's time zone. */
  readonly calledOn: Day;
}

/**
 * Computes a value of a record. Called once for each record, in the order of the response and for rejected ones too.
 * All calls for a response share one `memory`.
 *
 * @param get returns a value of the record as it was sent, by the name of its source field.
 * @param read returns a value as it would be stored in a column of a kind, null if it cannot be read.
 */
export type Compute = (
  get: (source: string) => unknown,
  read: (source: string, kind: Kind) => Scalar,
  memory: Map<string, number>,
) => Scalar;

/** What every field declares. */
interface FieldBase<Column extends string, ColumnKind extends Kind> {
  /** In snake_case, of at most 63 characters, which Postgres does not shorten. */
  readonly column: Column;
  readonly kind: ColumnKind;
  /** A sentence that says what the value means. */
  readonly meaning: string;
  /** Unit of the value, for comments and the data dictionary: `rupees`, `shares`, `percent`. */
  readonly unit?: string;
  /** A record without this value is a reject. */
  readonly required?: boolean;
  /** The value of a key column when the source sends none, because a key cannot be null. */
  readonly absent?: '' | 0;
  /** Texts that mean that there is no value. */
  readonly blanks?: readonly string[];
  /** Other source fields that may have the value, tried in order after the first. */
  readonly orElse?: readonly string[];
  /** True if it means nothing in this data set. Then what cannot be read is null, and the response has a warning. */
  readonly meaningless?: boolean;
}

/** A field of the source's response. */
export interface ResponseField<
  Column extends string = string,
  ColumnKind extends Kind = Kind,
  Source extends string = string,
> extends FieldBase<Column, ColumnKind> {
  readonly from: 'response';
  /** The name in the service's interface description; matched without regard to case. */
  readonly source: Source;
  /** What is stored instead of the value as it was sent. */
  readonly compute?: Compute;
}

/** A column whose value comes from the request, because the response does not have it. */
export interface RequestField<Column extends string = string, ColumnKind extends Kind = Kind>
  extends FieldBase<Column, ColumnKind> {
  readonly from: 'request';
  readonly value: (requested: Requested) => string;
}

/** A column that is computed from the record and its position in the response. */
export interface DerivedField<Column extends string = string, ColumnKind extends Kind = Kind>
  extends FieldBase<Column, ColumnKind> {
  readonly from: 'derived';
  readonly value: Compute;
}

export type Field<Column extends string = string, ColumnKind extends Kind = Kind> =
  | ResponseField<Column, ColumnKind>
  | RequestField<Column, ColumnKind>
  | DerivedField<Column, ColumnKind>;

/**
 * The columns that name the instrument of a row. `market.instruments` is built from the rows of such tables: it states
 * what an instrument was called on a day.
 */
export interface Naming<Column extends string = string> {
  readonly symbol: Column;
  readonly series?: Column;
  readonly isin?: Column;
  readonly scripCode?: Column;
  readonly name?: Column;
  /** Date or date-time columns; the first that has a value is the day on which the instrument had these names. */
  readonly day: readonly [Column, ...Column[]];
  /** True if it had these names for the last time on the day before that. */
  readonly dayBefore?: boolean;
}

/** A table of the schema `market`. */
export interface TableDefinition<Own extends Field = Field, Key extends string = string> {
  /** A plural in snake_case, of at most 50 characters, because names of functions and indexes add to it. */
  readonly name: string;
  /** A sentence that says what a row is. */
  readonly comment: string;
  /** Primary key columns, always including `exchange`; a migration may index them in another order. */
  readonly key: readonly Key[];
  /** Every data column: key columns first, then values, then source audit. */
  readonly fields: readonly Own[];
  /** The column of `partitionBy`, or else the first date column of the key, if there is one: coverage, partitions and locks use it. */
  readonly dateColumn: string | null;
  /** True if the table is partitioned by year of `dateColumn`. */
  readonly partitioned: boolean;
  /** The names of instruments in its rows; all names in a row belong to the same instrument. */
  readonly names: readonly Naming[];
}

/** The name of a column that is declared with this table. */
export type ColumnOf<Table extends TableDefinition> = Table['fields'][number]['column'];

/** The name of a source field that is declared with this table. */
export type SourceOf<Table extends TableDefinition> = Table['fields'][number] extends infer Own
  ? Own extends ResponseField
    ? Own['source'] | (Own extends { readonly orElse: readonly (infer Other)[] } ? Other : never)
    : never
  : never;

/** The columns of a declared table that have a value in each row. */
type NeverNull<Table extends TableDefinition> =
  | Table['key'][number]
  | Extract<Table['fields'][number], { readonly required: true }>['column'];

/** A row of a declared table: its columns and their values follow from the lines of its fields. */
export type RowOf<Table extends TableDefinition> = {
  [Own in Table['fields'][number] as Own['column']]:
    | ValueOf<Own['kind']>
    | (string extends Own['column'] ? null : Own['column'] extends NeverNull<Table> ? never : null);
};

/** One of the record shapes that an operation may respond with, and the table it is stored in. */
export interface Shape<Table extends TableDefinition = TableDefinition> {
  readonly table: Table;
  /** A record has this shape if it has all of these source fields … */
  readonly has: readonly SourceOf<Table>[];
  /** … and, if set, at least one of these. */
  readonly hasOneOf?: readonly SourceOf<Table>[];
  /** At least one of these source fields must name the instrument, or the record is rejected. */
  readonly namedBy?: readonly SourceOf<Table>[];
  /** Column with the requested symbol, if coverage can be recorded for each instrument. */
  readonly symbolColumn?: ColumnOf<Table>;
  /**
   * True if records have the trading day that was requested, so that coverage can be recorded day by day. Then a
   * record of any other day is rejected.
   */
  readonly dated: boolean;
  /** What a row says that contradicts the request; then the record is rejected. Null if nothing does. */
  contradiction?(
    row: RowOf<Table>,
    requested: Requested,
  ): { readonly column: ColumnOf<Table>; readonly message: string } | null;
  /** Column with the exchange of a record: a record of another known exchange is rejected. */
  readonly exchangeColumn?: ColumnOf<Table>;
  /**
   * What a response to a request without instruments and filters lists in full: the requested days, everything that
   * the exchange has, or nothing in particular. Stored rows that such a response no longer lists are withdrawn.
   */
  readonly fullSet: 'days' | 'exchange' | 'none';
}

/** A data set, or a part of its declaration, whose shapes are of these tables: each names columns and fields of its own. */
export type WithShapes<Declared, Tables extends readonly TableDefinition[]> = Omit<Declared, 'shapes'> & {
  readonly shapes: { readonly [At in keyof Tables]: Shape<Tables[At]> };
};

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
  /** True if it narrows the response. Then the response does not list its day in full and gives no coverage. */
  readonly isFilter: boolean;
}

/** The parameters of a request, besides `accessKey`, `exchange` and `format`. */
interface RequestDeclaration {
  /** `range`: from and to as moments; `day`: date; `none`: the operation takes no dates. */
  readonly dates: 'range' | 'day' | 'none';
  /** Set if only some requests of the operation have the date: true for these. */
  readonly datedWhen?: (requested: Pick<Requested, 'params' | 'instruments'>) => boolean;
  /** `many`: instrumentIdentifiers (25 at most); `one`: instrumentIdentifier. */
  readonly instruments: 'many' | 'one' | 'none';
  /** True if it takes `dTFormat`, which says how dates are to be written. */
  readonly dTFormat: boolean;
  readonly options: readonly RequestOption[];
}

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

/** One request for one instrument, for operations that request data per instrument. */
export interface InstrumentRequest extends DayRange {
  /** Identifies the request in the coverage of a day, e.g. `eod/Standalone`; '' if there is only one. */
  readonly variant: string;
  readonly params: Readonly<Record<string, string>>;
  /** True if it is requested even if an earlier response covers it. */
  readonly always?: boolean;
}

/** What the requests of an operation by instrument are computed from. */
export interface RequestInput extends DayRange {
  /** Trading days of the exchange from `from` to `to`, ascending. */
  readonly tradingDays: readonly string[];
  /** Today in the source's zone. */
  readonly today: string;
  /** True for today's nightly run. Only then are real-time figures worth a request. */
  readonly live: boolean;
  /** Request options that the user has set, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
}

/** Up to `days` calendar days a window. */
interface RangeWindows {
  readonly per: 'range';
  /** The longest range of a request. */
  readonly days: number;
  /** Records may be of days that are not trading days. */
  readonly everyDay: boolean;
  /** A response about days may list only what has changed on them; every run also requests each part, once a day. */
  readonly parts?: Parts;
  /** Records may be of days to come; a nightly run also requests this many days after it. */
  readonly ahead?: number;
}

/** One window for each instrument and request. */
interface InstrumentWindows {
  readonly per: 'instrument';
  /** The days for which data is expected: trading days, last days of quarters, or none in particular. */
  readonly days: 'sessions' | 'quarters' | 'none';
  readonly requests: (input: RequestInput) => readonly InstrumentRequest[];
}

/**
 * How a range becomes windows, one request each. `session`: one for each trading day. `once`: one for each run, without
 * dates.
 */
type Windows = RangeWindows | InstrumentWindows | { readonly per: 'session' | 'once' };

/** Its records come from imported files, or are computed from stored data. */
export interface FileWindows {
  readonly per: 'file';
  /**
   * The days for which data is expected, between the first and the last that files have: all trading days; only some,
   * because files leave out the days without records; or none in particular, because a file is a list.
   */
  readonly days: 'sessions' | 'some sessions' | 'none';
}

export interface Schedule {
  /** `HH:mm` in the source's zone, for the first exchange; the others follow a few minutes later. Unique among the operations. */
  readonly at: string;
  /** Every day, or the weekday of a weekly operation. */
  readonly on: keyof typeof SCHEDULED_WEEKDAYS;
  /** True if the last EOD_LOOKBACK_SESSIONS trading days are requested again, to get late corrections. */
  readonly hasLookback: boolean;
  /** Its turn in a night whose calls do not all fit the quota: 1 prices, 2 lists of whole exchanges, 3 details of instruments. */
  readonly order: 1 | 2 | 3;
}

/** A data set that is requested from the source service. */
export interface Operation {
  /** Its name in requests to the source, such as GetBhavCopyCM. */
  readonly name: string;
  /** A plural of a few words, shown beside the name of its table. By default the words of that name. */
  readonly title?: string;
  readonly group?: (typeof GROUPS)[number];
  /** A sentence that says what the records are. */
  readonly summary: string;
  /**
   * Of the shapes that a record has, the one that reads most of its fields stores it. The table of the first one is that
   * by whose name users know the data set.
   */
  readonly shapes: readonly [Shape, ...Shape[]];
  /**
   * The segment of the exchanges' UDiFF files that has its records. `exchanges` maps the exchange that a row names to the
   * one it is stored under: `{ NSE: 'NFO' }`.
   */
  readonly udiff?: { readonly segment: string; readonly exchanges: Readonly<Record<string, string>> };
  /** Further tables that some imported files fill; responses of the source have no data for them. */
  readonly alsoInFiles?: readonly TableDefinition[];
  /** Exchanges and segments (`BFO`, `BSE_IDX`) it is requested for when the user names none. */
  readonly exchanges: readonly string[];
  readonly request: RequestDeclaration;
  readonly windows: Windows;
  /** `HH:mm` in the source's zone, when the day's data can be expected. An earlier empty response means nothing. */
  readonly publishedAt: string;
  readonly schedule: Schedule;
  /** True if it is normal that a trading day has no records. If not, data is missing. */
  readonly emptyIsNormal: boolean;
  /** An example of a request and of the service's response to it. */
  readonly sample: { readonly requested: Omit<Requested, 'calledOn'>; readonly response: unknown };
}

/**
 * Records of one kind and the tables they are stored in, whether they are requested or, with `per: 'file'`, come from
 * imported files or are computed from stored data. Data sets with `per: 'file'` are never requested.
 */
export interface DataSet extends Omit<Operation, 'windows' | 'schedule' | 'sample'> {
  readonly windows: Windows | FileWindows;
  readonly schedule: Schedule | null;
  readonly sample: Operation['sample'] | null;
}
