import { columnNameFor } from '../../operations/column-names.ts';
import {
  dayFirstAsIso,
  type Kind,
  numberWithoutCommas,
  plainName,
  type ResponseField,
} from '../../operations/fields.ts';
import type { DataSet } from '../../operations/operation.ts';
import { LOAD_AUDIT, type Scalar, SOURCE_AUDIT, VALIDITY } from '../../operations/table.ts';
import { readerOf } from '../record-schema.ts';
import { InvalidValue, isBlank } from '../values.ts';

/** A record of a response that no declaration describes yet. */
export type SavedRecord = Readonly<Record<string, unknown>>;

/** A field of the response, and the column that it seems to be. */
export interface GuessedColumn {
  readonly source: string;
  readonly column: string;
  readonly kind: Kind;
  /** The function of declarations that makes the value readable. */
  readonly compute?: keyof typeof WAYS;
  readonly unit?: string;
  readonly meaning?: string;
  /** What the guess rests on. */
  readonly because: string;
  /** The value of each record as it would be stored. */
  readonly values: readonly Scalar[];
  /** True if each record names the field, if only with a null. */
  readonly isInAll: boolean;
}

export interface GuessedColumns {
  readonly columns: readonly GuessedColumn[];
  /** Fields that no column can read, and why. */
  readonly leftOut: readonly { readonly source: string; readonly because: string }[];
}

interface GuessContext {
  /** Declared elsewhere: their fields say what a name of the source is called here. */
  readonly known: readonly DataSet[];
  readonly timeZone: string;
  /** Columns that there are already. */
  readonly taken?: readonly string[];
}

/** What makes values readable that are not written as the source documents them. */
const WAYS = { dayFirst: dayFirstAsIso, withoutCommas: numberWithoutCommas };

/** The audit fields that every table has anyway. */
const AUDIT = ['receivedat', 'savedat'];

/** Columns that every table has, or that the draft may add itself. */
const TAKEN = [
  'exchange',
  ...SOURCE_AUDIT,
  ...Object.keys(LOAD_AUDIT),
  ...Object.keys(VALIDITY),
  'ordinal',
  'requested_date',
];

/** Guesses the column of each field of these records, in the order in which the fields are first named. */
export function guessColumns(records: readonly SavedRecord[], context: GuessContext): GuessedColumns {
  const known = knownFields(context.known);
  const taken = new Set([...TAKEN, ...(context.taken ?? [])]);
  const columns: GuessedColumn[] = [];
  const leftOut: { source: string; because: string }[] = [];
  for (const { source, sent } of fieldsOf(records)) {
    if (AUDIT.includes(plainName(source))) {
      leftOut.push({ source, because: 'every table has it' });
      continue;
    }
    const like = known.get(plainName(source));
    const guess = source.trim() === '' ? null : guessKind(source, sent, like?.field.kind, context.timeZone);
    if (guess === null) {
      leftOut.push({ source, because: source.trim() === '' ? 'it has no name' : whyNoColumn(sent) });
      continue;
    }
    const isLike = like !== undefined && guess.kind === like.field.kind;
    const name = isLike ? like.field.column : columnNameFor(source, guess.kind === 'boolean');
    const column = freeName(name === 'exchange' ? 'exchange_name' : name, taken);
    taken.add(column);
    columns.push({
      source,
      column,
      ...guess,
      // What comes after the first clause is about that operation.
      ...(isLike ? { meaning: like.field.meaning.replace(/;.*$/, '.') } : {}),
      ...(isLike && like.field.unit !== undefined ? { unit: like.field.unit } : {}),
      because: isLike ? `as in ${like.operation}` : guess.because,
      isInAll: sent.every((value) => value !== undefined),
    });
  }
  return { columns, leftOut };
}

/** The fields of records with the value that each record sends; undefined where it does not name the field. */
function fieldsOf(records: readonly SavedRecord[]): { source: string; sent: readonly unknown[] }[] {
  const fields = new Map<string, { source: string; sent: unknown[] }>();
  for (const [at, record] of records.entries()) {
    for (const [source, value] of Object.entries(record)) {
      const plain = plainName(source);
      const field = fields.get(plain) ?? { source, sent: new Array(records.length).fill(undefined) };
      fields.set(plain, field);
      // Of two spellings in a record, the first is used, as when it is read.
      if (field.sent[at] === undefined) field.sent[at] = value;
    }
  }
  return [...fields.values()];
}

interface KnownField {
  readonly field: ResponseField;
  readonly operation: string;
}

/** What the source's names are called by most of the declarations that there are. */
function knownFields(dataSets: readonly DataSet[]): ReadonlyMap<string, KnownField> {
  const uses = new Map<string, (KnownField & { count: number })[]>();
  for (const { name, shapes } of dataSets) {
    for (const field of shapes.flatMap(({ table }) => table.fields)) {
      if (field.from !== 'response' || field.compute !== undefined) continue;
      const list = uses.get(plainName(field.source)) ?? [];
      uses.set(plainName(field.source), list);
      const same = list.find((one) => one.field.column === field.column && one.field.kind === field.kind);
      if (same === undefined) list.push({ field, operation: name, count: 1 });
      else same.count += 1;
    }
  }
  // A name that means one thing here and another there says nothing.
  return new Map(
    [...uses].flatMap(([plain, list]) => {
      const all = list.reduce((sum, { count }) => sum + count, 0);
      const most = list.reduce((a, b) => (b.count > a.count ? b : a));
      return 2 * most.count > all ? [[plain, most] as const] : [];
    }),
  );
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  for (let number = 2; ; number++) if (!taken.has(`${name}_${number}`)) return `${name}_${number}`;
}

type Guess = Pick<GuessedColumn, 'kind' | 'compute' | 'because' | 'values'>;

const DAY_NAME = /date|day|time|_(?:at|on)$/i;
/** What is called a day, whatever time of day its moments have. */
const DAY = /^(?:trade|deal|gross|report|business)?_?(?:date|day)$/i;
/** A date as a text; digits alone are a date only if their name says so. */
const DATE_TEXT = /^\s*(\d{1,2}-(\d{1,2}|[a-z]{3})-\d{4}|\d{4}-\d\d-\d\d)/i;
/** A date of which the day may come first. */
const DAY_FIRST_TEXT = /^\s*\d{1,2}[-/.]\d{1,2}[-/.]\d{4}/;

/** A number without zeros before it, which would be a code. */
const NUMBER_TEXT = /^\s*[+-]?(0|[1-9]\d*)?(\.\d*)?(e[+-]?\d{1,3})?\s*$/i;

/** The first kind, of those that the values look like, that reads all of them; null if none does. */
function guessKind(
  source: string,
  sent: readonly unknown[],
  known: Kind | undefined,
  timeZone: string,
): Guess | null {
  const values = sent.filter((value) => !isBlank(value));
  const all = (test: (value: unknown) => boolean) => values.length > 0 && values.every(test);
  const isText = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value);
  const isEpoch = (value: unknown) =>
    /^-?\d+(\.0+)?$/.test(String(value)) && (Number(value) === 0 || Math.abs(Number(value)) >= 1e8);
  const read = (kind: Kind, compute?: keyof typeof WAYS) => {
    const reader = readerOf(kind, timeZone);
    const found = sent.map((value) => reader(compute === undefined ? value : WAYS[compute](value)));
    return found.some((value) => value instanceof InvalidValue) ? null : (found as Scalar[]);
  };
  const candidates: [Kind, string, (keyof typeof WAYS)?][] = [];
  const isDate =
    all(isText(DATE_TEXT)) ||
    (DAY_NAME.test(source) && all(isEpoch) && values.some((value) => Number(value) !== 0));
  if (isDate) {
    const moments = read('datetime');
    const days = moments?.every((one) => one === null || / 00:00:00/.test(String(one)));
    const hasTime = values.some((value) => /\d:\d\d/.test(String(value)));
    const isAbsent = moments?.every((one) => one === null) === true;
    if (days && !(isAbsent && hasTime)) candidates.push(['date', 'days without a time']);
    else if (DAY.test(source))
      candidates.push(['date', 'the day of its moments; datetime would keep the time']);
    candidates.push(['datetime', 'moments of days']);
  }
  if (all(isText(DAY_FIRST_TEXT))) {
    const hasTime = values.some((value) => /\d:\d\d/.test(String(value)));
    candidates.push([hasTime ? 'datetime' : 'date', 'the day, then the month', 'dayFirst']);
  }
  if (all((value) => typeof value === 'boolean' || isText(/^\s*(true|false)\s*$/i)(value))) {
    candidates.push(['boolean', 'true and false']);
  }
  const isNumber = all(
    (value) => typeof value === 'number' || (isText(NUMBER_TEXT)(value) && /\d/.test(String(value))),
  );
  if (isNumber) {
    candidates.push(['int8', 'whole numbers'], ['numeric', 'numbers']);
  }
  const isAmount = all(
    (value) => /\d/.test(String(value)) && NUMBER_TEXT.test(String(numberWithoutCommas(value))),
  );
  if (isAmount && !isNumber) {
    candidates.push(['int8', 'whole numbers with commas', 'withoutCommas']);
    candidates.push(['numeric', 'numbers with commas', 'withoutCommas']);
  }
  candidates.push(['text', values.length === 0 ? 'no record has a value' : 'texts']);
  const fitting = candidates.flatMap(([kind, because, compute]) => {
    const found = read(kind, compute);
    return found === null
      ? []
      : [{ kind, because, values: found, ...(compute === undefined ? {} : { compute }) }];
  });
  const [first = null] = fitting;
  if (known === undefined || first === null || known === first.kind) return first;
  // What is declared elsewhere has seen more records; but it must not lose what these have, such as a time.
  const isWider =
    (first.kind === 'int8' && ['int2', 'int4', 'numeric', 'text'].includes(known)) ||
    (first.kind === 'numeric' && known === 'text') ||
    values.length === 0;
  const compute = known === 'text' ? undefined : first.compute;
  const found = isWider ? read(known, compute) : null;
  if (found === null) return first;
  return { kind: known, because: '', values: found, ...(compute === undefined ? {} : { compute }) };
}

const whyNoColumn = (sent: readonly unknown[]): string =>
  sent.some((value) => typeof value === 'object' && value !== null)
    ? 'it holds a list or an object'
    : 'its values are of several kinds';
