import { messageOf, usageError } from '../../core/errors.ts';
import { columnNameFor } from '../../operations/column-names.ts';
import { type Kind, plainName } from '../../operations/fields.ts';
import { type DataSet, type Operation, tablesOfResponses } from '../../operations/operation.ts';
import { VIEWS } from '../../operations/table.ts';
import { decodeText } from '../body.ts';
import { parseDecimal, unsafeNumberText } from '../decimals.ts';
import { openResponse } from '../envelope.ts';
import { printable } from '../sanitize.ts';
import { type GuessedColumn, type GuessedColumns, guessColumns, type SavedRecord } from './guess-columns.ts';

export interface DraftInput extends SavedResponse {
  /** The name by which the source is called. */
  readonly name: string;
  /** Declared elsewhere: what names of the source are called here. */
  readonly known: readonly DataSet[];
  /** The names of the tables that there are; those of views are taken besides. */
  readonly taken: readonly string[];
  readonly timeZone: string;
  /** The day that the sample is of, if its records have none. */
  readonly today: string;
}

/** How many records the sample has. */
const SAMPLE = 3;

/** A field by which a record is identified is one of the first so many that every record has. */
const MOST_TELLING = 3;

interface GuessedKey {
  /** The columns that distinguish the records, without the exchange. */
  readonly columns: readonly GuessedColumn[];
  /** True if equal records are counted, because no columns distinguish all of them. */
  readonly isCounted: boolean;
  readonly day: GuessedColumn | null;
  readonly instrument: GuessedColumn | null;
}

/** The longest text of a key. */
const LONGEST = 200;

/** How many columns are tried together beside the day and the instrument, and of how many. */
const MOST_TOGETHER = 3;

const MOST_TRIED = 20;

/** So many records rule out nearly all columns that do not distinguish records. */
const MOST_AT_FIRST = 500;

/** How many columns the key of a set has whose records are counted: Postgres allows 32. */
const MOST_COUNTED = 12;

const INSTRUMENTS = [/^symbol$/, /^scrip_code$/, /^scrip_id$/, /^isin$/, /(^|_)(symbol|scrip_code|isin)$/];

const INSTRUMENT_LIKE = /^instrument(_identifier)?$|^(trade_)?symbol|^security(_name)?$|^company_code$/;

/** What is always in the key of facts, which have neither an instrument nor a day. */
const OF_FACTS = ['key', 'fact_key', 'label', 'context_name', 'unit_id'];

interface SavedResponse {
  readonly records: readonly SavedRecord[];
  /** The name of the list, if it is not `Value`. */
  readonly envelope: string | null;
}

/** Writes the text of a module that declares an operation, from a response; what is guessed says so (pure). */
export function draftDeclaration(input: DraftInput): string {
  const { name, records } = input;
  const guessed = guessColumns(records, input);
  const { columns } = guessed;
  const areFacts = looksLikeFacts(columns);
  const key = guessKey(columns, records.length, areFacts);
  const table = tableName(name, input.taken);
  const parts = partsOf(guessed, key, {
    keyNames: areFacts ? ['symbol', 'requested_date'] : [],
    fields: areFacts ? OF_REQUEST : [],
    makers: ['defineOperation', 'defineTable', ...(areFacts ? ['fromRequest'] : [])],
    whyCounted: 'the other columns of the key are equal in some records, so these are counted',
  });
  return `// @ts-check
import { ${parts.makers} } from 'eod-pipeline/operations';

// What was inferred from ${records.length === 1 ? 'one record' : `${records.length} records`} is marked "guessed":
// correct it, and remove the mark.
const table = defineTable({
  name: ${quoted(table)}, // guessed: from the name of the operation
  comment: ${quoted(`Records of ${name}.`)}, // guessed: say what a row is
  key: [${parts.keyNames}], // guessed: ${keyReason(key, records.length, areFacts)}
  fields: [
${parts.fields}
  ],
});

export default defineOperation({
  name: ${quoted(name)},
  summary: ${quoted(`Records of ${name}`)}, // guessed: say what the records are
  exchanges: [${listText(exchangesIn(records))}], // guessed: the exchanges that have it
${requestText(key, areFacts, columns)}
  shapes: [
    {
      table,
${identifyingText(columns, key)}
      dated: ${key.day !== null}, // guessed: ${key.day === null ? 'no column has the day that was requested' : `${key.day.column} is the day that was requested`}
      fullSet: 'none', // guessed: 'days' if a response lists its days in full, so that what it lists no longer is withdrawn
    },
  ],
${input.envelope === null || input.envelope.toLowerCase() === 'value' ? '' : `  envelope: ${quoted(input.envelope)},\n`}  publishedAt: '21:15', // guessed: when the data of a day can be expected
  schedule: { at: '21:45', on: 'daily', hasLookback: ${key.day !== null}${areFacts ? ", spread: 'week'" : ''} }, // guessed: ${areFacts ? 'a seventh of the instruments each night' : 'every night'}
  emptyIsNormal: true, // guessed: false if a day without records is an error
  sample: {
    requested: ${sampleRequested(input, key, areFacts)}, // guessed: what was requested
    response: ${indented(literal({ [input.envelope ?? 'Value']: sampleOf(records) }), 4)},
  },
});
`;
}

/** What a declaration has besides the columns that are guessed. */
interface Further {
  readonly keyNames: readonly string[];
  /** The lines of fields before the others. */
  readonly fields: readonly string[];
  /** Names of functions. */
  readonly makers: readonly string[];
  /** Why equal records are counted, if they are. */
  readonly whyCounted: string;
}

/** The key, the lines of the fields, and the names of the functions of a declaration. */
export function partsOf({ columns, leftOut }: GuessedColumns, key: GuessedKey, further: Further) {
  const counted = listText(key.columns.map(({ source }) => source));
  const keyNames = [
    'exchange',
    ...further.keyNames,
    ...key.columns.map(({ column }) => column),
    ...(key.isCounted ? ['ordinal'] : []),
  ];
  const fields = [
    ...further.fields,
    ...columns.map((one) => fieldText(one, key)),
    ...(key.isCounted ? [`occurrence('ordinal', [${counted}]), // guessed: ${further.whyCounted}`] : []),
    ...leftOut.map(leftOutText),
  ];
  const makers = [
    ...further.makers,
    ...columns.flatMap(({ kind, compute }) => (compute === undefined ? [kind] : [kind, compute])),
    ...(key.isCounted ? ['occurrence'] : []),
  ];
  return {
    keyNames: listText(keyNames),
    fields: fields.map((line) => `    ${line}`).join('\n'),
    makers: [...new Set(makers)].sort().join(', '),
  };
}

/** True if these are facts, which name neither the instrument nor the day that they are of. */
function looksLikeFacts(columns: readonly GuessedColumn[]): boolean {
  const has = (...names: string[]) => columns.some(({ source }) => names.includes(plainName(source)));
  const isNamed = columns.some(({ column }) => ['symbol', 'scrip_code', 'isin'].includes(column));
  return has('value') && has('label', 'key') && has('unitid', 'decimals', 'contextname') && !isNamed;
}

export function tableName(name: string, taken: readonly string[]): string {
  const base = columnNameFor(name.replace(/^Get(?=.)/, ''))
    .slice(0, 40)
    .replace(/_+$/, '');
  const isTaken = (one: string): boolean => taken.includes(one) || VIEWS.includes(one);
  let free = base;
  while (isTaken(free)) free = `own_${free}`;
  return free;
}

/** The fields of facts that only the request has. */
const OF_REQUEST = [
  "fromRequest('symbol', 'text', 'Instrument requested.', ({ instruments }) => instruments[0] ?? '')",
  "fromRequest('requested_date', 'date', 'Day requested.', ({ to }) => to)",
].map((field) => `${field}, // guessed: no field of the response has it`);

/** The line for a field that is not in the key. */
const lineOfField = (one: GuessedColumn): string =>
  fieldText(one, { columns: [], isCounted: false, day: null, instrument: null });

/** The line for a field that no column can read. */
const leftOutText = ({ source, because }: GuessedColumns['leftOut'][number]): string =>
  `// left out: ${oneLine(source)}, as ${because}`;

function fieldText(one: GuessedColumn, key: GuessedKey): string {
  const { source, column, kind, compute, unit, because } = one;
  const isKey = key.columns.includes(one);
  const hasAll = one.values.every((value) => value !== null);
  const options = [
    ...(isKey ? [hasAll ? 'required: true' : `absent: ${absentOf(kind) === 0 ? 0 : "''"}`] : []),
    ...(unit === undefined ? [] : [`unit: ${quoted(unit)}`]),
    ...(compute === undefined ? [] : [`compute: ${compute}(${quoted(source)})`]),
  ];
  const meaning = one.meaning ?? `${oneLine(source)} as sent.`;
  const further = options.length === 0 ? '' : `, { ${options.join(', ')} }`;
  return `${kind}(${quoted(source)}, ${quoted(column)}, ${quoted(meaning)}${further}), // guessed: ${because}`;
}

export function keyReason({ columns, isCounted }: GuessedKey, records: number, areFacts: boolean): string {
  if (isCounted) return 'no few columns distinguish all records';
  if (records === 1) return 'there is one record only; name what distinguishes records';
  return areFacts || columns.length > 0
    ? `distinguishes the ${records} records`
    : 'there is one record a request';
}

function requestText({ day }: GuessedKey, areFacts: boolean, columns: readonly GuessedColumn[]): string {
  const hasTimes = columns.some(({ kind }) => kind === 'date' || kind === 'datetime');
  const request = (dates: string, instruments: string, reason: string) =>
    `  request: { dates: '${dates}', instruments: '${instruments}', dTFormat: ${hasTimes}, options: [] }, // guessed: ${reason}`;
  if (areFacts) {
    return `${request('day', 'one', 'facts are requested by instrument and day')}
  windows: {
    per: 'instrument', // guessed: with per 'row', the rows of an operation that lists filings are the requests
    days: 'none',
    requests: ({ to }) => [{ from: to, to, variant: '', params: {} }],
  },`;
  }
  return day === null
    ? `${request('none', 'none', 'no column has a day')}
  windows: { per: 'once' }, // guessed: the whole list each time`
    : `${request('range', 'none', 'from and to; other dates are years, day and spans')}
  windows: { per: 'range', days: 30, everyDay: false }, // guessed: days is the longest range, everyDay for data of holidays`;
}

/** By which fields a record is identified: of those that all have, the key's first. */
function identifyingText(columns: readonly GuessedColumn[], { columns: key }: GuessedKey): string {
  const ordered = [...columns].sort((a, b) => Number(key.includes(b)) - Number(key.includes(a)));
  const inAll = ordered.filter(({ isInAll }) => isInAll).slice(0, MOST_TELLING);
  const sources = (list: readonly GuessedColumn[]) => listText(list.map(({ source }) => source));
  return inAll.length > 0
    ? `      has: [${sources(inAll)}], // guessed: every record has these`
    : `      has: [],\n      hasOneOf: [${sources(ordered)}], // guessed: no field is in every record`;
}

/** The exchanges that a field of the records names. */
function exchangesIn(records: readonly SavedRecord[]): readonly string[] {
  const named = records.flatMap((record) =>
    Object.entries(record).flatMap(([name, value]) => (plainName(name) === 'exchange' ? [value] : [])),
  );
  const codes = named.filter(
    (one): one is string => typeof one === 'string' && /^[A-Z][A-Z0-9_]{1,20}$/.test(one),
  );
  return codes.length === 0 || codes.length < named.length ? ['BSE'] : [...new Set(codes)].sort();
}

function sampleRequested(input: DraftInput, { day }: GuessedKey, areFacts: boolean): string {
  const days = [...(day?.values ?? [])].map(String).sort();
  const [exchange = 'BSE'] = exchangesIn(input.records);
  const [from = input.today, to = input.today] = [days[0], days.at(-1)];
  return `{ exchange: '${exchange}', from: '${from}', to: '${to}', instruments: [${areFacts ? "'TCS'" : ''}], params: {} }`;
}

/** Few records that together show as many fields as possible. */
function sampleOf(records: readonly SavedRecord[]): readonly SavedRecord[] {
  const chosen = new Set(records.slice(0, 1));
  const shown = new Set<string>();
  const newOf = (record: SavedRecord) =>
    Object.keys(record).filter((name) => !shown.has(name) && record[name] !== null);
  for (const record of records) {
    const fresh = newOf(record);
    if (chosen.size < SAMPLE && fresh.length > 0) chosen.add(record);
    if (chosen.has(record)) for (const name of fresh) shown.add(name);
  }
  for (const record of records) if (chosen.size < SAMPLE) chosen.add(record);
  return records.filter((record) => chosen.has(record)).slice(0, SAMPLE);
}

/** A name of the source in a comment, which ends with its line. */
const oneLine = (text: string): string => printable(text).replace(/\s+/g, ' ').trim();

/** A text as a literal in quotes. */
export const quoted = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

export const listText = (texts: readonly string[]): string => texts.map(quoted).join(', ');

/** A value as a literal; `__proto__` would set the prototype. */
const literal = (value: unknown): string =>
  JSON.stringify(value, null, 2)
    .replace(/^( *)"__proto__":/gm, '$1["__proto__"]:')
    .replace(/^( *)"([A-Za-z_$][\w$]*)":/gm, '$1$2:');

const indented = (text: string, by: number): string => text.replaceAll('\n', `\n${' '.repeat(by)}`);

interface FieldsInput {
  readonly operation: Operation;
  /** The bodies of kept responses of the operation. */
  readonly bodies: readonly Buffer[];
  /** Fields to declare, as names are compared. */
  readonly fields: readonly string[];
  /** Declared elsewhere: what names of the source are called here. */
  readonly known: readonly DataSet[];
  readonly timeZone: string;
}

/** Writes the lines of a declaration for fields that it does not read, from responses that have them (pure). */
export function draftFields({ operation, bodies, fields, ...context }: FieldsInput): string[] {
  const records = bodies.flatMap((body) => {
    const opened = openResponse(body, { operation, count: 'ignore', redact: (text) => text });
    return opened.records.filter(isRecord).map((record) => onlyOf(withDigits(record), fields));
  });
  const taken = tablesOfResponses(operation).flatMap((table) => table.fields.map(({ column }) => column));
  const { columns, leftOut } = guessColumns(records, { ...context, taken });
  return [...columns.map(lineOfField), ...leftOut.map(leftOutText)];
}

const onlyOf = (record: SavedRecord, fields: readonly string[]): SavedRecord =>
  Object.fromEntries(Object.entries(record).filter(([name]) => fields.includes(plainName(name))));

const hasAll = ({ values }: GuessedColumn) => values.every((value) => value !== null);

/** The value that a key column has where the source sends none; undefined if its kind has none. */
function absentOf(kind: Kind): '' | 0 | undefined {
  if (kind === 'text') return '';
  return ['int2', 'int4', 'int8', 'numeric'].includes(kind) ? 0 : undefined;
}

function mayBeKey(column: GuessedColumn): boolean {
  const { kind, values } = column;
  if (values.some((value) => typeof value === 'string' && value.length > LONGEST)) return false;
  return hasAll(column) || (absentOf(kind) !== undefined && values.some((value) => value !== null));
}

function instrumentOf(columns: readonly GuessedColumn[]): GuessedColumn | null {
  const fitting = columns.filter(({ kind }) => kind !== 'numeric' && kind !== 'boolean' && kind !== 'date');
  for (const pattern of [...INSTRUMENTS, INSTRUMENT_LIKE]) {
    const found = fitting.find(({ column }) => pattern.test(column));
    if (found !== undefined) return found;
  }
  return null;
}

/** The first column of days that every record has; better one whose name begins so, as an end or change is a detail. */
function dayOf(columns: readonly GuessedColumn[]): GuessedColumn | null {
  const days = columns.filter((one) => one.kind === 'date' && hasAll(one));
  const isDetail = ({ column }: GuessedColumn) =>
    /^(from|to|end|start|valid|expiry|maturity|created|updated|record|ex)(_|$)|_(from|to|expiry)$/.test(
      column,
    );
  return days.find((one) => !isDetail(one)) ?? days[0] ?? null;
}

/** How likely a column distinguishes records, by its kind and the rules of its name; figures are the last that do. */
function rank({ kind, column }: GuessedColumn): number {
  if (/(^|_)(price|quantity|turnover|value|percent|amount|crore|lakh|count|total)(_|$)/.test(column))
    return 9;
  if (/(^|_)(key|code|id|type|name|series|label|category|group|no|number)(_|$)/.test(column)) return 1;
  return { text: 2, date: 3, boolean: 4, int2: 5, int4: 5, int8: 6, datetime: 7, numeric: 8 }[kind];
}

/** The value as Postgres compares it. */
function compared(value: GuessedColumn['values'][number], kind: Kind): unknown {
  if (value === null) return absentOf(kind) ?? null;
  return kind === 'numeric' || kind.startsWith('int') ? parseDecimal(String(value)) : value;
}

/** Counts the groups into which columns divide the records. */
function createDividing(columns: readonly GuessedColumn[]) {
  const texts = new Map(
    columns.map((one) => [one, one.values.map((value) => JSON.stringify(compared(value, one.kind)))]),
  );
  return (chosen: readonly GuessedColumn[], records: number): number => {
    const lists = chosen.map((one) => texts.get(one) ?? []);
    const groups = new Set<string>();
    for (let at = 0; at < records; at++) groups.add(lists.map((list) => list[at]).join('\t'));
    return groups.size;
  };
}

/** All sets of so many of these items, the first items first. */
function* setsOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (const [at, item] of items.entries()) {
    for (const rest of setsOf(items.slice(at + 1), size - 1)) yield [item, ...rest];
  }
}

/**
 * Guesses the key: the day and the instrument, as records of others will come, and the fewest further columns that
 * distinguish the records; if none do, equal ones are counted.
 *
 * @param records how many there are.
 * @param areFacts whether day and instrument are in the request only.
 */
export function guessKey(columns: readonly GuessedColumn[], records: number, areFacts: boolean): GuessedKey {
  const keyable = columns.filter(mayBeKey);
  const day = areFacts ? null : dayOf(keyable);
  const instrument = areFacts ? null : instrumentOf(keyable);
  const always = areFacts
    ? keyable.filter(({ column }) => OF_FACTS.includes(column))
    : [day, instrument].filter((one) => one !== null);
  // A fact whose value is corrected is the same fact: equal ones are counted.
  const others = areFacts
    ? []
    : keyable.filter((one) => !always.includes(one)).sort((a, b) => rank(a) - rank(b));
  const groups = createDividing(keyable);
  const found = { day, instrument };
  const tried = others.slice(0, MOST_TRIED);
  for (let size = always.length === 0 ? 1 : 0; size <= MOST_TOGETHER; size++) {
    for (const further of setsOf(tried, size)) {
      const chosen = [...always, ...further];
      const [few, all] = [Math.min(records, MOST_AT_FIRST), records];
      if (groups(chosen, few) === few && groups(chosen, all) === all)
        return { ...found, columns: chosen, isCounted: false };
    }
  }
  return { ...found, columns: [...always, ...others].slice(0, MOST_COUNTED), isCounted: true };
}

/** Opens a response with the reader of the pipeline, to which anything, or nothing, is a record of the operation. */
function open(body: Buffer, has: readonly string[]): readonly unknown[] {
  const shapes = [{ has, table: { fields: [] } }];
  const operation = { name: 'the draft', shapes } as unknown as Operation;
  return openResponse(body, { operation, count: 'ignore', redact: (text) => text }).records;
}

const isRecord = (value: unknown): value is SavedRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The records of a response that was saved: JSON in an envelope with a list of any name, a bare list or object, XML, or
 * CSV with a header.
 *
 * @throws PipelineError `usage` if it has no records, and says why.
 */
export function readSavedResponse(body: Buffer): SavedResponse {
  let records: readonly unknown[];
  let envelope: string | null = null;
  try {
    // Elements of XML are entered as long as they are no records, and every object may be one.
    const isXml = decodeText(body).trimStart().startsWith('<');
    records = open(body, isXml ? ['\u0000'] : []);
    const [only] = records;
    const lists =
      records.length === 1 && isRecord(only)
        ? Object.entries(only).filter(([, value]) => Array.isArray(value) && value.some(isRecord))
        : [];
    const [list] = lists;
    if (list !== undefined && lists.length === 1) {
      envelope = list[0];
      records = list[1] as readonly unknown[];
    }
  } catch (error) {
    throw usageError(
      `it is no response with records (${messageOf(error)}): save one in JSON, XML or CSV with a header`,
    );
  }
  const found = records.filter(isRecord).map(withDigits);
  if (!found.some((record) => Object.keys(record).length > 0)) {
    throw usageError('it has no records: save a response that has some');
  }
  return { records: found, envelope };
}

/** Numbers that a double does not hold are texts here, with every digit. */
function withDigits(record: SavedRecord): SavedRecord {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, unsafeNumberText(value) ?? value]),
  );
}
