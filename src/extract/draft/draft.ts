import { columnNameFor } from '../../operations/column-names.ts';
import { plainName } from '../../operations/fields.ts';
import { type DataSet, type Operation, tablesOfAnswers } from '../../operations/operation.ts';
import { VIEWS } from '../../operations/views.ts';
import { openAnswer } from '../envelope.ts';
import { printable } from '../sanitize.ts';
import { type GuessedColumn, type GuessedColumns, guessColumns } from './guess-columns.ts';
import { absentOf, type GuessedKey, guessKey } from './guess-key.ts';
import { isRecord, type SavedAnswer, type SavedRecord, withDigits } from './saved-answer.ts';

interface DraftInput extends SavedAnswer {
  /** The name by which the source is asked. */
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

/** A field by which a record is told is one of the first so many that every record has. */
const MOST_TELLING = 3;

/** Writes the text of a module that declares an operation, from an answer; what is guessed says so (pure). */
export function draftDeclaration(input: DraftInput): string {
  const { name, records } = input;
  const { columns, leftOut } = guessColumns(records, input);
  const areFacts = looksLikeFacts(columns);
  const key = guessKey(columns, records.length, areFacts);
  const table = tableName(name, input.taken);
  const keyNames = [
    'exchange',
    ...(areFacts ? ['symbol', 'asked_date'] : []),
    ...key.columns.map(({ column }) => column),
    ...(key.isCounted ? ['ordinal'] : []),
  ];
  const fields = [
    ...(areFacts ? OF_REQUEST : []),
    ...columns.map((one) => fieldText(one, key)),
    ...(key.isCounted
      ? [
          `occurrence('ordinal', [${listText(key.columns.map(({ source }) => source))}]), // guessed: the other columns of the key are equal in some records, so these are counted`,
        ]
      : []),
    ...leftOut.map(leftOutText),
  ];
  const makers = [
    'defineOperation',
    'defineTable',
    ...columns.flatMap(({ kind, workOut }) => (workOut === undefined ? [kind] : [kind, workOut])),
    ...(areFacts ? ['fromRequest'] : []),
    ...(key.isCounted ? ['occurrence'] : []),
  ];
  return `// @ts-check
import { ${[...new Set(makers)].sort().join(', ')} } from 'eod-pipeline/operations';

// What was worked out from ${records.length === 1 ? 'one record' : `${records.length} records`} is marked "guessed": correct it, and remove the mark.
const table = defineTable({
  name: ${quoted(table)}, // guessed: from the name of the operation
  comment: ${quoted(`Records of ${name}.`)}, // guessed: say what a row is
  key: [${listText(keyNames)}], // guessed: ${keyReason(key, records.length, areFacts)}
  fields: [
${fields.map((line) => `    ${line}`).join('\n')}
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
${tellingText(columns, key)}
      dated: ${key.day !== null}, // guessed: ${key.day === null ? 'no column has the day that was asked for' : `${key.day.column} is the day that was asked for`}
      fullSet: 'none', // guessed: 'days' if an answer lists its days in full, so that what it lists no longer is withdrawn
    },
  ],
${input.envelope === null || input.envelope.toLowerCase() === 'value' ? '' : `  envelope: ${quoted(input.envelope)},\n`}  publishedAt: '21:15', // guessed: when the data of a day can be expected
  schedule: { at: '21:45', on: 'daily', hasLookback: ${key.day !== null}${areFacts ? ", spread: 'week'" : ''} }, // guessed: ${areFacts ? 'a seventh of the instruments each night' : 'every night'}
  emptyIsNormal: true, // guessed: false if a day without records is an error
  sample: {
    asked: ${sampleAsked(input, key, areFacts)}, // guessed: what was asked for
    answer: ${indented(literal({ [input.envelope ?? 'Value']: sampleOf(records) }), 4)},
  },
});
`;
}

/** Are these facts, which name neither the instrument nor the day that they are of? */
function looksLikeFacts(columns: readonly GuessedColumn[]): boolean {
  const has = (...names: string[]) => columns.some(({ source }) => names.includes(plainName(source)));
  const isNamed = columns.some(({ column }) => ['symbol', 'scrip_code', 'isin'].includes(column));
  return has('value') && has('label', 'key') && has('unitid', 'decimals', 'contextname') && !isNamed;
}

function tableName(name: string, taken: readonly string[]): string {
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
  "fromRequest('symbol', 'text', 'Instrument asked for.', ({ instruments }) => instruments[0] ?? '')",
  "fromRequest('asked_date', 'date', 'Day asked for.', ({ to }) => to)",
].map((field) => `${field}, // guessed: no field of the answer has it`);

/** The line for a field that is not in the key. */
export const lineOfField = (one: GuessedColumn): string =>
  fieldText(one, { columns: [], isCounted: false, day: null, instrument: null });

/** The line for a field that no column can read. */
export const leftOutText = ({ source, because }: GuessedColumns['leftOut'][number]): string =>
  `// left out: ${oneLine(source)}, as ${because}`;

function fieldText(one: GuessedColumn, key: GuessedKey): string {
  const { source, column, kind, workOut, unit, because } = one;
  const isKey = key.columns.includes(one);
  const hasAll = one.values.every((value) => value !== null);
  const options = [
    ...(isKey ? [hasAll ? 'required: true' : `absent: ${absentOf(kind) === 0 ? 0 : "''"}`] : []),
    ...(unit === undefined ? [] : [`unit: ${quoted(unit)}`]),
    ...(workOut === undefined ? [] : [`workOut: ${workOut}(${quoted(source)})`]),
  ];
  const meaning = one.meaning ?? `${oneLine(source)} as sent.`;
  const further = options.length === 0 ? '' : `, { ${options.join(', ')} }`;
  return `${kind}(${quoted(source)}, ${quoted(column)}, ${quoted(meaning)}${further}), // guessed: ${because}`;
}

function keyReason({ columns, isCounted }: GuessedKey, records: number, areFacts: boolean): string {
  if (isCounted) return 'no few columns tell all records apart';
  if (records === 1) return 'there is one record only; name what tells records apart';
  return areFacts || columns.length > 0
    ? `tells the ${records} records apart`
    : 'there is one record a request';
}

function requestText({ day }: GuessedKey, areFacts: boolean, columns: readonly GuessedColumn[]): string {
  const hasTimes = columns.some(({ kind }) => kind === 'date' || kind === 'datetime');
  const request = (dates: string, instruments: string, reason: string) =>
    `  request: { dates: '${dates}', instruments: '${instruments}', dTFormat: ${hasTimes}, options: [] }, // guessed: ${reason}`;
  if (areFacts) {
    return `${request('day', 'one', 'facts are asked for by instrument and day')}
  windows: {
    per: 'instrument', // guessed: with per 'row', the rows of an operation that lists filings are the questions
    days: 'none',
    questions: ({ to }) => [{ from: to, to, variant: '', params: {} }],
  },`;
  }
  return day === null
    ? `${request('none', 'none', 'no column has a day')}
  windows: { per: 'once' }, // guessed: the whole list each time`
    : `${request('range', 'none', 'from and to; other dates are years, day and spans')}
  windows: { per: 'range', days: 30, everyDay: false }, // guessed: days is the longest range, everyDay for data of holidays`;
}

/** By which fields a record is told: of those that all have, the key's first. */
function tellingText(columns: readonly GuessedColumn[], { columns: key }: GuessedKey): string {
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

function sampleAsked(input: DraftInput, { day }: GuessedKey, areFacts: boolean): string {
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
const quoted = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

const listText = (texts: readonly string[]): string => texts.map(quoted).join(', ');

/** A value as a literal; `__proto__` would set the prototype. */
const literal = (value: unknown): string =>
  JSON.stringify(value, null, 2)
    .replace(/^( *)"__proto__":/gm, '$1["__proto__"]:')
    .replace(/^( *)"([A-Za-z_$][\w$]*)":/gm, '$1$2:');

const indented = (text: string, by: number): string => text.replaceAll('\n', `\n${' '.repeat(by)}`);

interface FieldsInput {
  readonly operation: Operation;
  /** The bodies of kept answers of the operation. */
  readonly bodies: readonly Buffer[];
  /** Fields to declare, as names are compared. */
  readonly fields: readonly string[];
  /** Declared elsewhere: what names of the source are called here. */
  readonly known: readonly DataSet[];
  readonly timeZone: string;
}

/** Writes the lines of a declaration for fields that it does not read, from answers that have them (pure). */
export function draftFields({ operation, bodies, fields, ...context }: FieldsInput): string[] {
  const records = bodies.flatMap((body) => {
    const opened = openAnswer(body, { operation, count: 'ignore', redact: (text) => text });
    return opened.records.filter(isRecord).map((record) => onlyOf(withDigits(record), fields));
  });
  const taken = tablesOfAnswers(operation).flatMap((table) => table.fields.map(({ column }) => column));
  const { columns, leftOut } = guessColumns(records, { ...context, taken });
  return [...columns.map(lineOfField), ...leftOut.map(leftOutText)];
}

const onlyOf = (record: SavedRecord, fields: readonly string[]): SavedRecord =>
  Object.fromEntries(Object.entries(record).filter(([name]) => fields.includes(plainName(name))));
