import type { z } from 'zod';
import { messageOf } from '../core/errors.ts';
import { didYouMean, nearest } from '../core/input.ts';
import { either } from '../core/wording.ts';
import { AVOIDED, isSnakeCase } from './column-names.ts';
import {
  declarationSchema,
  onceRequestsSchema,
  REQUESTS,
  REQUESTS_ONCE,
  requestsSchema,
  SPANS,
} from './declaration-schema.ts';
import { plainName } from './fields.ts';
import { expectedDay, type Operation, type Shape } from './operation.ts';
import { LOAD_AUDIT, SOURCE_AUDIT, type TableDefinition, VALIDITY, VIEWS } from './table.ts';

/** What is wrong with a declaration: one sentence with the path of the member and what to write instead. */
export interface DeclarationProblem {
  /** An operation with an error cannot be used; a warning is about a name or a habit. */
  readonly level: 'error' | 'warning';
  readonly text: string;
}

interface CheckOptions {
  /** The file of the declaration, with which each sentence begins. */
  readonly file?: string;
  /** The names of all operations, if they are known: `windows.of` must be one of them. */
  readonly names?: readonly string[];
}

/** The rules of column names at the top of docs/tables.md. */

/** How a name ends whose values have a unit. */
const ENDINGS: readonly (readonly [unit: RegExp, ending: string])[] = [
  [/\bcrores?\b/i, '_crore'],
  [/\blakhs?\b/i, '_lakh'],
  [/\bthousands?\b/i, '_thousand'],
  [/\bmillions?\b/i, '_million'],
  [/\bpercentage points\b/i, '_percent_change'],
  [/\bpercent\b/i, '_percent'],
  [/\bmilliseconds\b/i, '_ms'],
];

/** What is called otherwise in `market`, where prices and quantities are. */
const AVOIDED_IN_MARKET: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(^|_)(open|high|low|close|ltp)$|^last$/, 'a name that ends in _price'],
  [/^(quantity|volume|shares|trades)$/, 'traded_quantity, turnover or trade_count'],
];

/** A column, or a parameter of a function. */
interface NamedColumn {
  readonly name: string;
  readonly isBoolean: boolean;
  readonly isMarket: boolean;
  readonly unit?: string | undefined;
}

/**
 * The problems of a declaration, which may be a value of any type: what a module exports (pure). Never throws. What its
 * parts mean together is checked where each of them is right.
 */
export function checkDeclaration(
  declaration: unknown,
  { file, names }: CheckOptions = {},
): readonly DeclarationProblem[] {
  const prefix = file === undefined ? '' : `${file}: `;
  const found: DeclarationProblem[] = [];
  try {
    for (const { level, text } of problemsOf(declaration, names))
      found.push({ level, text: `${prefix}${text}` });
  } catch (error) {
    const text = `it cannot be read, because a member of it throws (${messageOf(error)}): use plain values`;
    found.push({ level: 'error', text: `${prefix}${text}` });
  }
  return found;
}

function* problemsOf(
  declaration: unknown,
  names: readonly string[] | undefined,
): Generator<DeclarationProblem> {
  const parsed = declarationSchema.safeParse(declaration);
  for (const issue of parsed.error?.issues ?? [])
    for (const text of sentencesOf(issue, declaration)) yield { level: 'error', text };
  if (!parsed.success) return;
  const operation = declaration as Operation;
  for (const text of meaningProblems(operation, names)) yield { level: 'error', text };
  for (const [path, table] of tablesOf(operation))
    for (const text of nameWarnings(table, path)) yield { level: 'warning', text };
}

/** What is wrong with a declaration of which each part is right. */
function* meaningProblems(operation: Operation, names: readonly string[] | undefined): Generator<string> {
  yield* requestProblems(operation);
  yield* windowProblems(operation, names);
  for (const [at, shape] of operation.shapes.entries()) yield* shapeProblems(shape, `shapes[${at}]`);
  for (const [path, table] of tablesOf(operation)) yield* tableProblems(table, path);
  yield* sampleProblems(operation);
}

/** What an issue of the schema says: what the value is, and what to write instead. */
function sentencesOf(issue: z.core.$ZodIssue, declaration: unknown): string[] {
  const path = issue.path.reduce<string>(
    (all, name) => (typeof name === 'number' ? `${all}[${name}]` : join(all, String(name))),
    '',
  );
  if (issue.code !== 'unrecognized_keys') {
    const value = issue.path.reduce<unknown>(
      (of, name) => (of as Record<PropertyKey, unknown>)[name],
      declaration,
    );
    return [`${path === '' ? 'the default export' : path} is ${shown(value)}: ${issue.message}`];
  }
  const known = issue.message.split(', ');
  return issue.keys.map((name) => {
    const similar = nearest(name, known);
    const remedy = similar === null ? `known are ${issue.message}` : `did you mean ${similar}?`;
    return `${join(path, /^\S+$/.test(name) ? name : shown(name))} is not a name of a declaration: ${remedy}`;
  });
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

const LONGEST_SHOWN = 60;

/** A value as a sentence shows it. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}

/** The values of a list that come more than once. */
const repeated = <Value>(values: readonly Value[]) =>
  new Set(values.filter((one, at) => values.indexOf(one) !== at));

/** Parameters that are sent anyway, in lower case. */
const OWN_PARAMS = [
  'accesskey',
  'exchange',
  'format',
  'from',
  'to',
  'fromdate',
  'todate',
  'date',
  'instrumentidentifier',
  'instrumentidentifiers',
];

function* requestProblems({ request }: Operation): Generator<string> {
  const { dates, spans = [], fixed = {}, options } = request;
  if (dates === 'spans' && request.spans === undefined) yield `request.spans is missing: ${SPANS}`;
  if (dates !== 'spans' && request.spans !== undefined)
    yield 'request.spans has no effect: set request.dates to spans, or remove it';
  for (const [at, { from, to }] of spans.entries())
    if (from > to) yield `request.spans[${at}].from is after its to: exchange them`;
  for (const param of Object.keys(fixed))
    if (OWN_PARAMS.includes(param.toLowerCase()))
      yield `request.fixed names ${param}, which is sent anyway: remove it`;
  for (const param of repeated(options.map((one) => one.param)))
    yield `request.options has ${shown(param)} twice: remove one of them`;
}

/** Which windows go with which dates of a request, where not all do. */
const DATES_OF_WINDOWS: Readonly<Record<string, readonly string[]>> = {
  range: ['range', 'years', 'spans'],
  session: ['day', 'range'],
  once: ['none'],
};

function* windowProblems(
  { name, windows, request, schedule }: Operation,
  names: readonly string[] | undefined,
): Generator<string> {
  const { per } = windows;
  const dates = DATES_OF_WINDOWS[per];
  if (dates !== undefined && !dates.includes(request.dates)) {
    const fitting = Object.keys(DATES_OF_WINDOWS).find((one) =>
      DATES_OF_WINDOWS[one]?.includes(request.dates),
    );
    yield `windows.per is "${per}", but request.dates is ${shown(request.dates)}: use ${fitting ?? 'instrument'}, or dates ${dates.join(' or ')}`;
  }
  if ((per === 'instrument' || per === 'row') && request.instruments === 'none')
    yield `windows.per is "${per}", but request.instruments is "none": use one or many`;
  if (per === 'instrument') yield* problemsOfRequests(per, () => windows.requests(expectedDay()));
  if (per === 'once' && windows.requests !== undefined) {
    const { requests } = windows;
    yield* problemsOfRequests(per, () => requests(expectedDay().today));
  }
  if (per === 'row') {
    if (windows.of === name) yield 'windows.of is the operation itself: name another one';
    else if (names !== undefined && !names.includes(windows.of))
      yield `windows.of is ${shown(windows.of)}: correct the name, or enable the operation${didYouMean(windows.of, names)}`;
  }
  if (schedule.spread === 'week' && (schedule.on !== 'daily' || per !== 'instrument'))
    yield 'schedule.spread applies to instruments that are requested daily: use it with on daily and windows.per instrument';
}

/** What `windows.requests` has to return, and how to say so. */
const RETURNED = {
  once: { schema: onceRequestsSchema, remedy: REQUESTS_ONCE },
  instrument: { schema: requestsSchema, remedy: REQUESTS },
} as const;

/** Tries the requests of a declaration for a day. */
function* problemsOfRequests(per: keyof typeof RETURNED, call: () => unknown): Generator<string> {
  let found: unknown;
  try {
    found = call();
  } catch (error) {
    yield `windows.requests fails for ${expectedDay().today} (${messageOf(error)}): ${RETURNED[per].remedy}`;
    return;
  }
  const problem = returnedProblem(per, found);
  if (problem !== null) yield `windows.requests ${problem}`;
}

/** What is wrong with what `windows.requests` has returned; null if nothing is. */
export function returnedProblem(per: Operation['windows']['per'], found: unknown): string | null {
  if (per !== 'once' && per !== 'instrument') return null;
  const { schema, remedy } = RETURNED[per];
  if (schema.safeParse(found).success) return null;
  return `returns ${shown(found)}${Array.isArray(found) ? ' of other elements' : ''}: ${remedy}`;
}

function* shapeProblems(shape: Shape, path: string): Generator<string> {
  const { table, dated, fullSet, has, hasOneOf } = shape;
  if (fullSet === 'days' && !dated)
    yield `${path}.fullSet is "days" of records without a day: set dated to true, or fullSet to none`;
  if (has.length === 0 && hasOneOf === undefined)
    yield `${path}.has is an empty list: list fields of the source, in quotes, that every such record has`;
  const read = new Set(
    table.fields.flatMap((field) =>
      field.from === 'response' ? [field.source, ...(field.orElse ?? [])].map(plainName) : [],
    ),
  );
  for (const name of ['has', 'hasOneOf', 'namedBy'] as const) {
    for (const field of shape[name] ?? [])
      if (!read.has(plainName(field)))
        yield `${path}.${name} names ${shown(field)}, which no field of the table reads: correct the name`;
  }
  if (dated && table.dateColumn === null)
    yield `${path}.dated is true, but the key has no date: add a date column to it, or set dated to false`;
  const columns = table.fields.map(({ column }) => column);
  for (const name of ['symbolColumn', 'exchangeColumn'] as const) {
    const column = shape[name];
    if (column !== undefined && !columns.includes(column))
      yield `${path}.${name} is ${shown(column)}: use a column of the table: ${columns.join(', ')}`;
  }
}

/** All tables of an operation, with their paths. */
const tablesOf = ({ shapes, also, alsoInFiles = [] }: Operation): (readonly [string, TableDefinition])[] => [
  ...shapes.map(({ table }, at) => [`shapes[${at}].table`, table] as const),
  ...(also === undefined ? [] : [['also.table', also.table] as const]),
  ...alsoInFiles.map((table, at) => [`alsoInFiles[${at}]`, table] as const),
];

const RESERVED = [...Object.keys(LOAD_AUDIT), ...Object.keys(VALIDITY)];

function* tableProblems({ name, key, fields }: TableDefinition, path: string): Generator<string> {
  if (VIEWS.includes(name))
    yield `${path}.name is ${shown(name)}, which is a view of the schema market: give the table another name`;
  for (const [at, { column }] of fields.entries())
    if (RESERVED.includes(column))
      yield `${path}.fields[${at}].column is ${shown(column)}, which every table has: use another name than ${either(RESERVED)}`;
  for (const column of repeated(fields.map((field) => field.column)))
    yield `${path}.fields declares the column ${shown(column)} twice: rename one of them`;
  if (!key.includes('exchange')) yield `${path}.key has no exchange: add 'exchange' to it`;
  for (const column of key) {
    const field = fields.find((one) => one.column === column);
    if (field === undefined)
      yield `${path}.key names ${shown(column)}, which no field has: add the field, or correct the name`;
    else if (field.from === 'response' && field.required !== true && field.absent === undefined)
      yield `${path}.key names ${shown(column)}, which a record may lack: give its field { required: true }, or { absent: '' } or { absent: 0 }`;
  }
}

function* nameWarnings({ fields }: TableDefinition, path: string): Generator<string> {
  for (const [at, { column, kind, unit }] of fields.entries()) {
    if ((SOURCE_AUDIT as readonly string[]).includes(column)) continue;
    for (const problem of nameProblems({ name: column, isBoolean: kind === 'boolean', isMarket: true, unit }))
      yield `${path}.fields[${at}].column is ${shown(column)}: ${problem} (docs/tables.md)`;
  }
}

/** True if the records of the sample have what the shapes need. Whether each can be read, only reading it shows. */
function* sampleProblems({ shapes, envelope = 'value', sample: { response } }: Operation): Generator<string> {
  // A response that is not JSON is given as text.
  if (typeof response === 'string' && response.trim() !== '') return;
  const records = recordsOf(response, envelope);
  if (records === null) {
    yield `sample.response is ${shown(response)}: use a response of the source, { Value: [ … ] } or a list`;
    return;
  }
  for (const [at, record] of records.entries()) {
    const has = new Set(isObject(record) ? Object.keys(record).map(plainName) : []);
    const missing = shapes.map((shape) => shape.has.filter((field) => !has.has(plainName(field))));
    const [fewest = []] = missing.sort((a, b) => a.length - b.length);
    if (fewest.length > 0)
      yield `sample.response has a record (the ${at + 1}.) of no shape: it lacks ${fewest.join(', ')}; correct shapes[…].has or the sample`;
  }
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The records of a response in JSON; null if it is none. */
function recordsOf(response: unknown, envelope: string): readonly unknown[] | null {
  if (Array.isArray(response)) return response;
  if (!isObject(response)) return null;
  for (const name of [envelope.toLowerCase(), 'value']) {
    const list = Object.entries(response).find(([key]) => key.toLowerCase() === name)?.[1];
    if (Array.isArray(list)) return list;
  }
  return [response];
}

/** What is wrong with a name, by the rules. */
export function nameProblems({ name, isBoolean, isMarket, unit }: NamedColumn): string[] {
  const problems = [...AVOIDED, ...(isMarket ? AVOIDED_IN_MARKET : [])].flatMap(([pattern, instead]) =>
    pattern.test(name) ? [`instead: ${instead}`] : [],
  );
  if (!isSnakeCase(name)) problems.push('not in snake_case');
  if (isBoolean !== /^(is|has)_/.test(name))
    problems.push('only booleans begin with is_ or has_, and all of them');
  if (unit !== undefined) {
    const due = ENDINGS.find(([pattern]) => pattern.test(unit))?.[1] ?? null;
    const ending = ENDINGS.find(([, one]) => name.endsWith(one))?.[1] ?? null;
    if (due !== ending) problems.push(`it is in ${unit}: ${due ?? 'no unit'} at the end`);
  }
  return problems;
}
