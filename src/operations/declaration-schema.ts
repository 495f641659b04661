import * as z from 'zod';
import { type DayRange, isDay } from '../core/days.ts';
import { either } from '../core/wording.ts';
import { isSnakeCase } from './column-names.ts';
import { GROUPS, type Kind, type Row, SCHEDULED_WEEKDAYS, SQL_TYPES } from './declaration-values.ts';

// What a declaration may be: the schema by which one is checked, and the types that are inferred from it. It is strict:
// a name that nobody reads is a mistake. The message of each part says what to write instead; what is wrong, and where,
// follows from the issue.

type Members = Readonly<Record<string, z.ZodType>>;
type OptionalName<Of> = { [Name in keyof Of]: Of[Name] extends z.ZodExactOptional ? Name : never }[keyof Of];
type Values<Of extends Members, Name extends keyof Of> = { readonly [One in Name]: z.infer<Of[One]> };
/** What `z.infer` says of an object, with the comments of its members, which editors show to those who write one. */
type ObjectOf<Of extends Members> = Values<Of, Exclude<keyof Of, OptionalName<Of>>> &
  Partial<Values<Of, OptionalName<Of>>>;

/** An object with these members and no others. The message about others lists those that are known. */
const object = <Of extends Members>(members: Of, remedy: string) =>
  z.strictObject(members, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(members).join(', ') : remedy),
  }) as unknown as z.ZodType<ObjectOf<Of>>;

/** One of several objects, by a member that each has. */
const oneOf = <Of extends z.ZodType>(
  member: string,
  objects: readonly Of[],
  error: (code: string) => string,
) =>
  z.discriminatedUnion(member, objects as never, {
    error: ({ code }) => error(code),
  }) as unknown as z.ZodType<z.infer<Of>>;

const text = (remedy: string) => z.string(remedy).regex(/\S/, remedy);
const word = <const Word extends string>(words: readonly Word[]) => z.enum(words, `use ${either(words)}`);
const boolean = z.boolean('use true or false');
const time = z
  .string('use a time such as 21:30')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'use a time such as 21:30');
const day = z.string('use a day such as 2025-02-27').refine(isDay, 'use a day such as 2025-02-27');
const whole = (remedy: string) => z.int(remedy);
const listOf = <Item extends z.ZodType>(item: Item, remedy: string) => z.array(item, remedy).readonly();
/** A list of at least one. */
const someOf = <Item extends z.ZodType>(item: Item, remedy: string) =>
  listOf(item, remedy).refine((list) => list.length > 0, remedy) as unknown as z.ZodType<
    readonly [z.infer<Item>, ...z.infer<Item>[]]
  >;
const fn = <Function>(remedy = 'use a function, or leave it out') =>
  z.custom<Function>((value) => typeof value === 'function', remedy);
const TEXTS = "use names with values in quotes, such as { onlyActive: 'true' }";
const texts = (remedy = TEXTS) => z.record(z.string(), text(remedy), remedy).readonly();

/** Postgres shortens longer names. */
const LONGEST_COLUMN = 63;
const LONGEST_TABLE = 50;

const COLUMN = `use a name in snake_case of at most ${LONGEST_COLUMN} characters, which Postgres does not shorten`;
const MEANING = 'say in a sentence what the value means';
const BLANKS = "list texts in quotes, such as ['N.A.']";

const SAMPLE = 'use { requested: { exchange, from, to, instruments, params }, response }';
const requested = object(
  {
    exchange: text('use a code such as BSE'),
    /** First and last day requested. */
    from: day,
    to: day,
    instruments: listOf(text('use names in quotes'), 'use a list, which may be empty'),
    /** The options of the request, and what planning notes for reading its response: `variant`, `trialDay`. */
    params: z
      .record(z.string(), z.string('use a value in quotes'), 'use an object, which may be empty')
      .readonly(),
  },
  SAMPLE,
);

/** What was requested; the source of values that the response does not have. */
export interface Requested extends z.infer<typeof requested> {
  /** Day of the call in the source's time zone. */
  readonly calledOn: string;
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
  read: (source: string, kind: Kind) => string | number | boolean | null,
  memory: Map<string, number>,
) => string | number | null;

const fieldMembers = {
  column: z.string(COLUMN).regex(new RegExp(`^[A-Za-z_]\\w{0,${LONGEST_COLUMN - 1}}$`), COLUMN),
  kind: word(Object.keys(SQL_TYPES) as Kind[]),
  meaning: text(MEANING),
  /** Unit of the value, for comments and the data dictionary: `rupees`, `shares`, `percent`. */
  unit: text('use a word such as rupees, or leave it out').exactOptional(),
  /** A record without this value is a reject. */
  required: boolean.exactOptional(),
  /** The value of a key column when the source sends none, because a key cannot be null. */
  absent: z.union([z.literal(''), z.literal(0)], "use '' or 0, or leave it out").exactOptional(),
  /** Texts that mean that there is no value. */
  blanks: listOf(z.string(BLANKS), BLANKS).exactOptional(),
  /** Other source fields that may have the value, tried in order after the first. */
  orElse: listOf(text('use names of the source'), 'list names of the source').exactOptional(),
  /** True if it means nothing in this data set. Then what cannot be read is null, and the response has a warning. */
  meaningless: boolean.exactOptional(),
};

const FIELDS = 'list text(…), date(…), numeric(…) and the like';

const responseField = object(
  {
    ...fieldMembers,
    from: z.literal('response'),
    /** The name in the service's interface description; matched without regard to case. */
    source: text('use the name of the source'),
    /** What is stored instead of the value as it was sent. */
    compute: fn<Compute>().exactOptional(),
  },
  FIELDS,
);

const requestField = object(
  {
    ...fieldMembers,
    from: z.literal('request'),
    value: fn<(requested: Requested) => string>('use a function'),
  },
  FIELDS,
);

const derivedField = object(
  { ...fieldMembers, from: z.literal('derived'), value: fn<Compute>('use a function') },
  FIELDS,
);

const field: z.ZodType<Field> = oneOf('from', [responseField, requestField, derivedField], (code) =>
  code === 'invalid_union' ? 'use response, request or derived' : FIELDS,
);

/** A field of the source's response. */
export interface ResponseField extends z.infer<typeof responseField> {}
/** A column whose value comes from the request, because the response does not have it. */
export interface RequestField extends z.infer<typeof requestField> {}
/** A column that is computed from the record and its position in the response. */
export interface DerivedField extends z.infer<typeof derivedField> {}
export type Field = ResponseField | RequestField | DerivedField;

const aColumn = text('use a column');

const naming = object(
  {
    symbol: aColumn,
    series: aColumn.exactOptional(),
    isin: aColumn.exactOptional(),
    scripCode: aColumn.exactOptional(),
    name: aColumn.exactOptional(),
    /** Date or date-time columns; the first that has a value is the day on which the instrument had these names. */
    day: someOf(aColumn, 'list columns'),
    /** True if it had these names for the last time on the day before that. */
    dayBefore: boolean.exactOptional(),
  },
  'use { symbol, day }',
);

/**
 * The columns that name the instrument of a row. `market.instruments` is built from the rows of such tables: it states
 * what an instrument was called on a day.
 */
export interface Naming extends z.infer<typeof naming> {}

const PLURAL = 'use a plural in snake_case, such as bulk_deals';
const KEY = 'list the columns that distinguish two rows, exchange among them';

const table = object(
  {
    /** Name inside the schema `market`. */
    name: z
      .string(PLURAL)
      .refine(isSnakeCase, PLURAL)
      .max(
        LONGEST_TABLE,
        `use at most ${LONGEST_TABLE} characters, because names of functions and indexes add to it`,
      ),
    comment: text('say in a sentence what a row is'),
    /** Primary key columns, always including `exchange`; a migration may index them in another order. */
    key: z.array(text(KEY), KEY).min(1, KEY).readonly(),
    /** Every data column: key columns first, then values, then source audit. */
    fields: z.array(field, FIELDS).min(1, FIELDS).readonly(),
    /** The column of `partitionBy`, or else the first date column of the key, if there is one: coverage, partitions and locks use it. */
    dateColumn: text('use a column, or null').nullable(),
    /** True if the table is partitioned by year of `dateColumn`. */
    partitioned: boolean,
    /** The names of instruments in its rows; all names in a row belong to the same instrument. */
    names: listOf(naming, 'use a list, which may be empty'),
  },
  'use defineTable({ name, comment, key, fields })',
);

export interface TableDefinition extends z.infer<typeof table> {}
/** By this type, which keeps that of an operation short. */
const aTable: z.ZodType<TableDefinition> = table;

const SOURCES = 'list fields of the source, in quotes, that every such record has';
const sources = z.array(text(SOURCES), SOURCES);

const shape = object(
  {
    table: aTable,
    /** A record has this shape if it has all of these source fields … */
    has: sources.readonly(),
    /** … and, if set, at least one of these. */
    hasOneOf: sources.min(1, SOURCES).readonly().exactOptional(),
    /** At least one of these source fields must name the instrument, or the record is rejected. */
    namedBy: sources.min(1, SOURCES).readonly().exactOptional(),
    /** Column with the requested symbol, if coverage can be recorded for each instrument. */
    symbolColumn: text('use a column, or leave it out').exactOptional(),
    /**
     * True if records have the session day that was requested, so that coverage can be recorded day by day. Then a
     * record of any other day is rejected.
     */
    dated: boolean,
    /** What a row says that contradicts the request; then the record is rejected. Null if nothing does. */
    contradiction:
      fn<
        (row: Row, requested: Requested) => { readonly column: string; readonly message: string } | null
      >().exactOptional(),
    /** Column with the exchange of a record: a record of another known exchange is rejected. */
    exchangeColumn: text('use a column, or leave it out').exactOptional(),
    /**
     * What a response to a request without instruments and filters lists in full: the requested days, everything that
     * the exchange has, or nothing in particular. Stored rows that such a response no longer lists are withdrawn.
     */
    fullSet: word(['days', 'exchange', 'none']),
  },
  'use { table, has, dated, fullSet }',
);

/** One of the record shapes that an operation may respond with, and the table it is stored in. */
export interface Shape extends z.infer<typeof shape> {}

const OPTION = 'use { param, meaning, isFilter }';
const FORM = "use { pattern: '\\\\d{4}', description: 'a year such as 2024' }";

const option = object(
  {
    /** The source's parameter name. */
    param: text('use the name of the parameter'),
    meaning: text('say what it does'),
    /** The value that is sent when the option is not set; undefined: the request has no such parameter. */
    fallback: z.string('use a value in quotes').exactOptional(),
    /** Values that are known. Users may write them in upper or lower case. Others are sent as they are … */
    values: listOf(text('list values in quotes'), 'list values in quotes').exactOptional(),
    /** … unless these are all that there are. */
    isClosed: boolean.exactOptional(),
    /** The format of a value, if the values cannot be listed. */
    form: object(
      {
        /** A regular expression that the whole value must match; a string, so that it can be printed as JSON. */
        pattern: text(FORM),
        /** The format in words, e.g. `four digits`. */
        description: text(FORM),
      },
      FORM,
    )
      .refine(({ pattern }) => isPattern(pattern), FORM)
      .exactOptional(),
    /**
     * True if it narrows the response. Then the response does not list its day in full and gives no coverage.
     */
    isFilter: boolean,
  },
  OPTION,
);

/** A request option that users can set, besides dates and instruments. */
export interface RequestOption extends z.infer<typeof option> {}

function isPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern) !== null;
  } catch {
    return false;
  }
}

const SPAN = "{ value: 'Previous7days', from: -7, to: 0 }";
const DAYS = 'use days from today, such as -7';

const span = object(
  {
    /** The value of the parameter `range`. */
    value: text('use the value of the parameter range'),
    from: whole(DAYS),
    to: whole(DAYS),
  },
  `use ${SPAN}`,
);

/** Days that a request can name, relative to the day of the call: `{ value: 'Previous7days', from: -7, to: 0 }`. */
export interface NamedSpan extends z.infer<typeof span> {}

export const SPANS = `list the spans that the source knows, such as ${SPAN}`;

/** The parameters of a request, besides `accessKey`, `exchange` and `format`. */
const request = object(
  {
    /**
     * `range`: from and to as moments; `years`: from and to as the years of the range; `day`: date; `spans`: range, the
     * name of the shortest of `spans` that contains the days requested; `none`: the operation takes no dates.
     */
    dates: word(['range', 'years', 'day', 'spans', 'none']),
    /** The named spans that the operation knows, for `dates: 'spans'`. Older days cannot be requested. */
    spans: z.array(span, SPANS).min(1, SPANS).readonly().exactOptional(),
    /**
     * For `dates: 'years'`: how many years before those of the range are requested too, as their records may still
     * come.
     */
    yearsBefore: whole('use a number of years, or leave it out')
      .min(0, 'use a number of years')
      .exactOptional(),
    /** Parameters that every request has, by the source's name. */
    fixed: texts().exactOptional(),
    /** Set if only some requests of the operation have the date: true for these. */
    datedWhen: fn<(requested: Pick<Requested, 'params' | 'instruments'>) => boolean>().exactOptional(),
    /** `many`: instrumentIdentifiers (25 at most); `one`: instrumentIdentifier. */
    instruments: word(['many', 'one', 'none']),
    /** True if it takes `dTFormat`. A text is the name of the parameter, where the source spells it otherwise. */
    dTFormat: z.union([z.boolean(), text('')], 'use true, false or the name of the parameter'),
    options: listOf(option, 'use a list, which may be empty'),
  },
  'use { dates, instruments, dTFormat, options }',
);

const PARTS = 'use { param, values, column }, or leave it out';
const RANGE = 'use the longest range of a request in days, such as 30';

const parts = object(
  {
    /** The source's parameter name. */
    param: text(PARTS),
    /** The values that are known; values of the source are compared with them without regard to case. */
    values: listOf(text(PARTS), PARTS),
    /** The column that has the value in the rows. */
    column: text(PARTS),
  },
  PARTS,
);

/**
 * Requests without dates whose responses together list everything that an exchange has: one for each value of a request
 * option. A value that is found in a response is requested too.
 */
export interface Parts extends z.infer<typeof parts> {}

export const REQUESTS = 'use a function that returns [{ from, to, variant, params }]';
export const REQUESTS_ONCE = "use a function that returns [{ type: 'A' }], or leave it out";

const instrumentRequest = object(
  {
    from: day,
    to: day,
    /** Identifies the request in the coverage of a day, e.g. `eod/Standalone`; '' if there is only one. */
    variant: z.string(),
    params: z.record(z.string(), z.string()).readonly(),
    /** True if it is requested even if an earlier response covers it. */
    always: z.boolean().exactOptional(),
  },
  REQUESTS,
);

/** One request for one instrument, for operations that request data per instrument. */
export interface InstrumentRequest extends z.infer<typeof instrumentRequest> {}

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

/** What functions of a declaration have to return. */
export const requestsSchema = z.array(instrumentRequest).readonly();
export const onceRequestsSchema = z.array(z.record(z.string(), z.string()).readonly()).readonly();

/** How a date range is divided into windows, of which each is one request. */
const WINDOWS = {
  /** Up to `days` calendar days a window. */
  range: object(
    {
      per: z.literal('range'),
      days: whole(RANGE).min(1, RANGE),
      /** Records may be of days that are not sessions. */
      everyDay: boolean,
      /**
       * A response about days may list only what has changed on them; every run also requests each part, once a day.
       */
      parts: parts.exactOptional(),
      /** Records may be of days to come; a nightly run also requests this many days after it. */
      ahead: whole('use a number of days, or leave it out').min(0, 'use a number of days').exactOptional(),
    },
    '',
  ),
  /** One session a window. */
  session: object({ per: z.literal('session') }, ''),
  /**
   * One window a run, without dates; with `requests` one for each of these values of options, by the day of the call,
   * unless the user sets them.
   */
  once: object(
    {
      per: z.literal('once'),
      requests: fn<(today: string) => z.infer<typeof onceRequestsSchema>>(REQUESTS_ONCE).exactOptional(),
    },
    '',
  ),
  /** One window for each instrument and request. */
  instrument: object(
    {
      per: z.literal('instrument'),
      /** The days for which data is expected: sessions, last days of quarters, or none in particular. */
      days: word(['sessions', 'quarters', 'none']),
      requests: fn<(input: RequestInput) => readonly InstrumentRequest[]>(REQUESTS),
    },
    '',
  ),
  /**
   * One window for each stored row of another operation, which lists what can be requested: a statement, a filing. A
   * row is requested once, and again when it changes.
   */
  row: object(
    {
      per: z.literal('row'),
      /** The operation whose first table has the rows. */
      of: text('use the name of the operation whose rows name what to request'),
      /** The column of those rows that names the instrument. */
      instrument: text('use the column that names the instrument'),
      /** The columns of those rows that give the parameters of a request, by the source's parameter name. */
      params: texts("use columns by parameter, such as { year: 'report_year' }"),
      /** The column of those rows with the day that is sent as `date`, if the operation takes one. */
      day: text('use a column, or leave it out').exactOptional(),
    },
    '',
  ),
} as const;

const windows = oneOf('per', Object.values(WINDOWS), (code) =>
  code === 'invalid_union'
    ? `use ${either(Object.keys(WINDOWS))}`
    : "use { per: 'range', days: 30, everyDay: false } or another of the forms",
);

const schedule = object(
  {
    /** `HH:mm` in the source's zone, for the first exchange; the others follow a few minutes later. */
    at: time,
    /** Every day, or the weekday of a weekly operation. */
    on: word(Object.keys(SCHEDULED_WEEKDAYS) as (keyof typeof SCHEDULED_WEEKDAYS)[]),
    /** True if the last EOD_LOOKBACK_SESSIONS sessions are requested again, to get late corrections. */
    hasLookback: boolean,
    /** True if its instruments are spread over the week, so that each night requests a seventh of them. */
    spread: z.literal('week', 'use week, or leave it out').exactOptional(),
    /**
     * What its windows are worth where not all of a night's fit: prices come before lists of whole exchanges, and these
     * before details of single instruments. By default details if it is about instruments, and lists otherwise.
     */
    value: word(['prices', 'lists', 'details']).exactOptional(),
  },
  "use { at: '21:30', on: 'daily', hasLookback: true }",
);

export interface Schedule extends z.infer<typeof schedule> {}
export type ScheduleValue = NonNullable<Schedule['value']>;

const sample = object({ requested, response: z.unknown() }, SAMPLE);

const NAME = 'use the name by which the source is called, such as GetVoting';
const EXCHANGES = "list codes in capitals, such as ['BSE', 'NSE'] or ['BFO']";
const ENVELOPE = 'use the name of the list in the response, or leave it out';
const TABLES = 'list tables, as defineTable({ … }) returns them';
const READING = 'use readFrom(table, { … })';
const SHAPES = 'list at least one, { table, has, dated, fullSet }';

const reading = object(
  {
    table: aTable,
    /** The fields of the table, in its order, with the names that these records have. */
    fields: listOf(field, READING),
  },
  READING,
);

/** How the records of another data set than its own fill a table. */
export interface TableReading extends z.infer<typeof reading> {}

/** What a declaration may be. What its parts mean together is checked by `checkDeclaration`. */
export const declarationSchema = object(
  {
    name: z.string(NAME).regex(/^\w{1,100}$/, NAME),
    /** What it is called where its table is named beside it: a plural of a few words. By default that name in words. */
    title: text('use a plural of a few words, or leave it out').exactOptional(),
    group: word(GROUPS).exactOptional(),
    summary: text('say in a sentence what the records are'),
    /**
     * A record is stored by the shape that reads most of its fields, of those it has. The first has the table by which
     * the data set is known.
     */
    shapes: someOf<z.ZodType<Shape>>(shape, SHAPES),
    /**
     * The exchanges' UDiFF files that have its records: those of a segment. `exchanges` says of which exchange their
     * rows are, by the exchange that they name.
     */
    udiff: object(
      { segment: text('use a segment such as FO'), exchanges: texts("use { NSE: 'NFO' }") },
      'use { segment, exchanges }, or leave it out',
    ).exactOptional(),
    /** Further tables that some imported files fill; responses of the source have no data for them. */
    alsoInFiles: listOf(aTable, TABLES).exactOptional(),
    /** A table of another data set that its responses fill besides: each record that is stored is a row there as well. */
    also: reading.exactOptional(),
    /** Exchanges and segments (`BFO`, `BSE_IDX`) it is requested for when the user names none. */
    exchanges: z
      .array(z.string(EXCHANGES).regex(/^[A-Z][A-Z0-9_]*$/, EXCHANGES), EXCHANGES)
      .min(1, EXCHANGES)
      .readonly(),
    request,
    windows,
    /** The name of the list of records in the response, if it is not `Value`. */
    envelope: text(ENVELOPE).exactOptional(),
    /** `HH:mm` in the source's zone, when the day's data can be expected. An earlier empty response means nothing. */
    publishedAt: time,
    schedule,
    /** True if it is normal that a session has no records. If not, data is missing. */
    emptyIsNormal: boolean,
    /** True if files of it leave out the days without records, so that a day that no file covers may have none. */
    filesSkipDays: boolean.exactOptional(),
    /** An example of a request and of the service's response to it. */
    sample,
    /**
     * The operation that serves the same data, with these parameters, if the source does not offer this one any more. It
     * must know the same shapes.
     */
    instead: object(
      { operation: text('use the name of an operation'), params: texts() },
      'use { operation, params }, or leave it out',
    ).exactOptional(),
  },
  'write "export default defineOperation({ … })"',
);

/** A data set that is requested from the source service. */
export interface Operation extends z.infer<typeof declarationSchema> {}

/**
 * Records of one kind and the tables they are stored in, whether they are requested or, with `per: 'file'`, come from
 * imported files or are computed from stored data. These are never requested, so they have no coverage.
 */
export interface DataSet extends Omit<Operation, 'windows' | 'schedule' | 'sample' | 'instead'> {
  readonly windows: Operation['windows'] | { readonly per: 'file' };
  readonly schedule: Schedule | null;
  readonly sample: Operation['sample'] | null;
}
