import * as z from 'zod';
import { isDay } from '../core/days.ts';
import { either } from '../core/wording.ts';
import { isSnakeCase } from './column-names.ts';
import {
  type DerivedField,
  type Kind,
  type Requested,
  type RequestField,
  type ResponseField,
  SQL_TYPES,
} from './fields.ts';
import {
  GROUPS,
  type InstrumentRequest,
  type NamedSpan,
  type Operation,
  type Parts,
  type RequestOption,
  SCHEDULED_WEEKDAYS,
  type Schedule,
  type Shape,
} from './operation.ts';
import type { Naming, TableDefinition, TableReading } from './table.ts';

// The schema of a declaration, strict: a name that nobody reads is a mistake. The message of each part says what to
// write instead; what is wrong, and where, follows from the issue.

type Members<Of> = { readonly [Name in keyof Required<Of>]: z.ZodType };

/** An object with these members and no others. The message about others lists those that are known. */
const object =
  <Of>() =>
  <Shape extends Members<Of>>(shape: Shape, remedy: string) =>
    z.strictObject(shape, {
      error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(shape).join(', ') : remedy),
    });

const text = (remedy: string) => z.string(remedy).regex(/\S/, remedy);
const word = <const Word extends string>(words: readonly Word[]) => z.enum(words, `use ${either(words)}`);
const boolean = z.boolean('use true or false');
const time = z
  .string('use a time such as 21:30')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'use a time such as 21:30');
const day = z.string('use a day such as 2025-02-27').refine(isDay, 'use a day such as 2025-02-27');
const whole = (remedy: string) => z.int(remedy);
const listOf = <Item extends z.ZodType>(item: Item, remedy: string) => z.array(item, remedy);
const fn = (remedy = 'use a function, or leave it out') =>
  z.custom((value) => typeof value === 'function', remedy);
const TEXTS = "use names with values in quotes, such as { onlyActive: 'true' }";
const texts = (remedy = TEXTS) => z.record(z.string(), text(remedy), remedy);

/** Postgres shortens longer names. */
const LONGEST_COLUMN = 63;
const LONGEST_TABLE = 50;

const COLUMN = `use a name in snake_case of at most ${LONGEST_COLUMN} characters, which Postgres does not shorten`;
const MEANING = 'say in a sentence what the value means';
const BLANKS = "list texts in quotes, such as ['N.A.']";

const fieldMembers = {
  column: z.string(COLUMN).regex(new RegExp(`^[A-Za-z_]\\w{0,${LONGEST_COLUMN - 1}}$`), COLUMN),
  kind: word(Object.keys(SQL_TYPES) as Kind[]),
  meaning: text(MEANING),
  unit: text('use a word such as rupees, or leave it out').optional(),
  required: boolean.optional(),
  absent: z.union([z.literal(''), z.literal(0)], "use '' or 0, or leave it out").optional(),
  blanks: listOf(z.string(BLANKS), BLANKS).optional(),
  orElse: listOf(text('use names of the source'), 'list names of the source').optional(),
  meaningless: boolean.optional(),
};

const FIELDS = 'list text(…), date(…), numeric(…) and the like';

const field = z.discriminatedUnion(
  'from',
  [
    object<ResponseField>()(
      {
        ...fieldMembers,
        from: z.literal('response'),
        source: text('use the name of the source'),
        compute: fn().optional(),
      },
      FIELDS,
    ),
    object<RequestField>()(
      { ...fieldMembers, from: z.literal('request'), value: fn('use a function') },
      FIELDS,
    ),
    object<DerivedField>()(
      { ...fieldMembers, from: z.literal('derived'), value: fn('use a function') },
      FIELDS,
    ),
  ],
  { error: ({ code }) => (code === 'invalid_union' ? 'use response, request or derived' : FIELDS) },
);

const aColumn = text('use a column');

const naming = object<Naming>()(
  {
    symbol: aColumn,
    series: aColumn.optional(),
    isin: aColumn.optional(),
    scripCode: aColumn.optional(),
    name: aColumn.optional(),
    day: listOf(aColumn, 'list columns').min(1, 'list columns'),
    dayBefore: boolean.optional(),
  },
  'use { symbol, day }',
);

const PLURAL = 'use a plural in snake_case, such as bulk_deals';
const KEY = 'list the columns that distinguish two rows, exchange among them';

const table = object<TableDefinition>()(
  {
    name: z
      .string(PLURAL)
      .refine(isSnakeCase, PLURAL)
      .max(
        LONGEST_TABLE,
        `use at most ${LONGEST_TABLE} characters, because names of functions and indexes add to it`,
      ),
    comment: text('say in a sentence what a row is'),
    key: listOf(text(KEY), KEY).min(1, KEY),
    fields: listOf(field, FIELDS).min(1, FIELDS),
    dateColumn: text('use a column, or null').nullable(),
    partitioned: boolean,
    names: listOf(naming, 'use a list, which may be empty'),
  },
  'use defineTable({ name, comment, key, fields })',
);

const SOURCES = 'list fields of the source, in quotes, that every such record has';
const sources = listOf(text(SOURCES), SOURCES);

const shape = object<Shape>()(
  {
    table,
    has: sources,
    hasOneOf: sources.min(1, SOURCES).optional(),
    namedBy: sources.min(1, SOURCES).optional(),
    symbolColumn: z.unknown().optional(),
    dated: boolean,
    contradiction: fn().optional(),
    exchangeColumn: z.unknown().optional(),
    fullSet: word(['days', 'exchange', 'none']),
  },
  'use { table, has, dated, fullSet }',
);

const OPTION = 'use { param, meaning, isFilter }';
const FORM = "use { pattern: '\\\\d{4}', description: 'a year such as 2024' }";

const option = object<RequestOption>()(
  {
    param: text('use the name of the parameter'),
    meaning: text('say what it does'),
    fallback: z.string('use a value in quotes').optional(),
    values: listOf(text('list values in quotes'), 'list values in quotes').optional(),
    isClosed: boolean.optional(),
    form: object<NonNullable<RequestOption['form']>>()({ pattern: text(FORM), description: text(FORM) }, FORM)
      .refine(({ pattern }) => isPattern(pattern), FORM)
      .optional(),
    isFilter: boolean,
  },
  OPTION,
);

function isPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern) !== null;
  } catch {
    return false;
  }
}

const SPAN = "{ value: 'Previous7days', from: -7, to: 0 }";
const DAYS = 'use days from today, such as -7';

const span = object<NamedSpan>()(
  { value: text('use the value of the parameter range'), from: whole(DAYS), to: whole(DAYS) },
  `use ${SPAN}`,
);

export const SPANS = `list the spans that the source knows, such as ${SPAN}`;

const request = object<Operation['request']>()(
  {
    dates: word(['range', 'years', 'day', 'spans', 'none']),
    spans: listOf(span, SPANS).min(1, SPANS).optional(),
    yearsBefore: whole('use a number of years, or leave it out').min(0, 'use a number of years').optional(),
    fixed: texts().optional(),
    datedWhen: fn().optional(),
    instruments: word(['many', 'one', 'none']),
    dTFormat: z.union([z.boolean(), text('')], 'use true, false or the name of the parameter'),
    options: listOf(option, 'use a list, which may be empty'),
  },
  'use { dates, instruments, dTFormat, options }',
);

const PARTS = 'use { param, values, column }, or leave it out';
const RANGE = 'use the longest range of a request in days, such as 30';

const parts = object<Parts>()(
  { param: text(PARTS), values: listOf(text(PARTS), PARTS), column: text(PARTS) },
  PARTS,
);

type Windows<Per> = Extract<Operation['windows'], { readonly per: Per }>;

export const REQUESTS = 'use a function that returns [{ from, to, variant, params }]';
export const REQUESTS_ONCE = "use a function that returns [{ type: 'A' }], or leave it out";

const WINDOWS = {
  range: object<Windows<'range'>>()(
    {
      per: z.literal('range'),
      days: whole(RANGE).min(1, RANGE),
      everyDay: boolean,
      parts: parts.optional(),
      ahead: whole('use a number of days, or leave it out').min(0, 'use a number of days').optional(),
    },
    '',
  ),
  session: object<Windows<'session'>>()({ per: z.literal('session') }, ''),
  once: object<Windows<'once'>>()({ per: z.literal('once'), requests: fn(REQUESTS_ONCE).optional() }, ''),
  instrument: object<Windows<'instrument'>>()(
    { per: z.literal('instrument'), days: word(['sessions', 'quarters', 'none']), requests: fn(REQUESTS) },
    '',
  ),
  row: object<Windows<'row'>>()(
    {
      per: z.literal('row'),
      of: text('use the name of the operation whose rows name what to request'),
      instrument: text('use the column that names the instrument'),
      params: texts("use columns by parameter, such as { year: 'report_year' }"),
      day: text('use a column, or leave it out').optional(),
    },
    '',
  ),
} as const;

const windows = z.discriminatedUnion(
  'per',
  [WINDOWS.range, WINDOWS.session, WINDOWS.once, WINDOWS.instrument, WINDOWS.row],
  {
    error: ({ code }) =>
      code === 'invalid_union'
        ? `use ${either(Object.keys(WINDOWS))}`
        : "use { per: 'range', days: 30, everyDay: false } or another of the forms",
  },
);

const schedule = object<Schedule>()(
  {
    at: time,
    on: word(Object.keys(SCHEDULED_WEEKDAYS)),
    hasLookback: boolean,
    spread: z.literal('week', 'use week, or leave it out').optional(),
    value: word(['prices', 'lists', 'details']).optional(),
  },
  "use { at: '21:30', on: 'daily', hasLookback: true }",
);

const SAMPLE = 'use { requested: { exchange, from, to, instruments, params }, response }';

const sample = object<Operation['sample']>()(
  {
    requested: object<Omit<Requested, 'calledOn'>>()(
      {
        exchange: text('use a code such as BSE'),
        from: day,
        to: day,
        instruments: listOf(text('use names in quotes'), 'use a list, which may be empty'),
        params: z.record(z.string(), z.string('use a value in quotes'), 'use an object, which may be empty'),
      },
      SAMPLE,
    ),
    response: z.unknown().optional(),
  },
  SAMPLE,
);

const NAME = 'use the name by which the source is called, such as GetVoting';
const EXCHANGES = "list codes in capitals, such as ['BSE', 'NSE'] or ['BFO']";
const ENVELOPE = 'use the name of the list in the response, or leave it out';
const TABLES = 'list tables, as defineTable({ … }) returns them';
const READING = 'use readFrom(table, { … })';

/** What a declaration may be. What its parts mean together is checked by `checkDeclaration`. */
export const declarationSchema = object<Operation>()(
  {
    name: z.string(NAME).regex(/^\w{1,100}$/, NAME),
    title: text('use a plural of a few words, or leave it out').optional(),
    group: word(GROUPS).optional(),
    summary: text('say in a sentence what the records are'),
    shapes: listOf(shape, 'list at least one, { table, has, dated, fullSet }').min(
      1,
      'list at least one, { table, has, dated, fullSet }',
    ),
    udiff: object<NonNullable<Operation['udiff']>>()(
      { segment: text('use a segment such as FO'), exchanges: texts("use { NSE: 'NFO' }") },
      'use { segment, exchanges }, or leave it out',
    ).optional(),
    alsoInFiles: listOf(table, TABLES).optional(),
    also: object<TableReading>()({ table, fields: listOf(field, READING) }, READING).optional(),
    exchanges: listOf(z.string(EXCHANGES).regex(/^[A-Z][A-Z0-9_]*$/, EXCHANGES), EXCHANGES).min(1, EXCHANGES),
    request,
    windows,
    envelope: text(ENVELOPE).optional(),
    publishedAt: time,
    schedule,
    emptyIsNormal: boolean,
    sample,
    instead: object<NonNullable<Operation['instead']>>()(
      { operation: text('use the name of an operation'), params: texts() },
      'use { operation, params }, or leave it out',
    ).optional(),
  },
  'write "export default defineOperation({ … })"',
);

/** What functions of a declaration have to return. */
export const requestsSchema = z.array(
  z.object({
    from: day,
    to: day,
    variant: z.string(),
    params: z.record(z.string(), z.string()),
    always: z.boolean().optional(),
  } satisfies Members<InstrumentRequest>),
);
export const onceRequestsSchema = z.array(z.record(z.string(), z.string()));
