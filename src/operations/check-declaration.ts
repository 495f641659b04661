import { isDay } from '../core/days.ts';
import { messageOf } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { checkFurtherTables, checkShapes, plainField } from './check-shapes.ts';
import {
  type DeclarationProblem,
  isObject,
  isText,
  join,
  Problems,
  shown,
  type Unchecked,
} from './declaration-problems.ts';
import { SCHEDULED_WEEKDAYS } from './operation.ts';

export type { DeclarationProblem } from './declaration-problems.ts';

export interface CheckOptions {
  /** The file of the declaration, with which each sentence begins. */
  readonly file?: string;
  /** The names of all operations, if they are known: `windows.of` must be one of them. */
  readonly names?: readonly string[];
}

const NAMES = [
  'name',
  'summary',
  'shapes',
  'also',
  'alsoInFiles',
  'udiff',
  'exchanges',
  'request',
  'windows',
  'envelope',
  'publishedAt',
  'schedule',
  'emptyIsNormal',
  'sample',
  'instead',
];

const REQUEST_NAMES = [
  'dates',
  'spans',
  'yearsBefore',
  'fixed',
  'datedWhen',
  'instruments',
  'dTFormat',
  'options',
];
const DATES = ['range', 'years', 'day', 'spans', 'none'];
const INSTRUMENTS = ['many', 'one', 'none'];
const OPTION_NAMES = ['param', 'meaning', 'fallback', 'values', 'isClosed', 'form', 'isFilter'];
const SCHEDULE_NAMES = ['at', 'on', 'hasLookback', 'spread', 'value'];

const WINDOW_NAMES: Readonly<Record<string, readonly string[]>> = {
  range: ['per', 'days', 'everyDay', 'parts', 'ahead'],
  session: ['per'],
  once: ['per', 'questions'],
  instrument: ['per', 'days', 'questions'],
  row: ['per', 'of', 'instrument', 'params', 'day'],
};

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

/**
 * The problems of a declaration, which may be a value of any type: what a module exports (pure). Never throws.
 */
export function checkDeclaration(
  declaration: unknown,
  options: CheckOptions = {},
): readonly DeclarationProblem[] {
  const problems = new Problems(options.file);
  try {
    checkAll(declaration, options, problems);
  } catch (error) {
    problems.error(
      `it cannot be read, because a member of it throws (${messageOf(error)}): use plain values`,
    );
  }
  return problems.all;
}

function checkAll(declaration: unknown, { names }: CheckOptions, problems: Problems): void {
  const remedy = 'write "export default defineOperation({ … })"';
  if (!problems.check(isObject(declaration), 'the default export', declaration, remedy)) return;
  const operation = declaration as Unchecked;
  const { name, exchanges, envelope, windows, request } = operation;
  problems.onlyKnown(operation, '', NAMES);
  const isName = typeof name === 'string' && /^\w{1,100}$/.test(name);
  problems.check(isName, 'name', name, 'use the name by which the source is asked, such as GetVoting');
  problems.text(operation, '', 'summary', 'say in a sentence what the records are');
  const areCodes =
    Array.isArray(exchanges) &&
    exchanges.length > 0 &&
    exchanges.every((one) => typeof one === 'string' && /^[A-Z][A-Z0-9_]*$/.test(one));
  problems.check(
    areCodes,
    'exchanges',
    exchanges,
    "list codes in capitals, such as ['BSE', 'NSE'] or ['BFO']",
  );
  problems.time(operation, '', 'publishedAt');
  problems.boolean(operation, '', 'emptyIsNormal');
  if (envelope !== undefined) {
    problems.check(
      isText(envelope),
      'envelope',
      envelope,
      'use the name of the list in the answer, or leave it out',
    );
  }
  checkRequest(request, problems);
  checkWindows(windows, isObject(request) ? request : {}, { name, names }, problems);
  checkSchedule(operation.schedule, isObject(windows) ? windows : {}, problems);
  checkShapes(operation.shapes, problems);
  checkFurtherTables(operation, problems);
  checkSample(operation, problems);
}

function checkRequest(request: unknown, problems: Problems): void {
  const remedy = 'use { dates, instruments, dTFormat, options }';
  if (!problems.check(isObject(request), 'request', request, remedy)) return;
  const { dates, spans, fixed, datedWhen, dTFormat } = request as Unchecked;
  const of = request as Unchecked;
  problems.onlyKnown(of, 'request', REQUEST_NAMES);
  problems.oneOf(of, 'request', 'dates', DATES);
  problems.oneOf(of, 'request', 'instruments', INSTRUMENTS);
  const isFormat = typeof dTFormat === 'boolean' || isText(dTFormat);
  problems.check(isFormat, 'request.dTFormat', dTFormat, 'use true, false or the name of the parameter');
  if (datedWhen !== undefined) {
    problems.check(
      typeof datedWhen === 'function',
      'request.datedWhen',
      datedWhen,
      'use a function, or leave it out',
    );
  }
  if (dates === 'spans') checkSpans(spans, problems);
  else if (spans !== undefined && DATES.includes(String(dates)))
    problems.error('request.spans has no effect: set request.dates to spans, or remove it');
  if (fixed !== undefined && isRecordOfTexts(fixed, 'request.fixed', problems)) {
    for (const param of Object.keys(fixed as object)) {
      if (!OWN_PARAMS.includes(param.toLowerCase())) continue;
      problems.error(`request.fixed names ${param}, which is sent anyway: remove it`);
    }
  }
  checkOptions(of.options, problems);
}

function checkSpans(spans: unknown, problems: Problems): void {
  const example = "{ value: 'Previous7days', from: -7, to: 0 }";
  const isList = Array.isArray(spans) && spans.length > 0;
  if (
    !problems.check(
      isList,
      'request.spans',
      spans,
      `list the spans that the source knows, such as ${example}`,
    )
  )
    return;
  (spans as readonly unknown[]).forEach((span, at) => {
    const path = `request.spans[${at}]`;
    if (!problems.check(isObject(span), path, span, `use ${example}`)) return;
    const { from, to } = span as Unchecked;
    problems.text(span as Unchecked, path, 'value', 'use the value of the parameter range');
    const areDays = Number.isInteger(from) && Number.isInteger(to);
    problems.check(
      areDays,
      `${path}.from or to`,
      areDays ? from : (from ?? to),
      'use days from today, such as -7',
    );
    if (areDays && Number(from) > Number(to)) problems.error(`${path}.from is after its to: exchange them`);
  });
}

/** Is it an object of texts? If not, that is a problem. */
function isRecordOfTexts(value: unknown, path: string, problems: Problems): boolean {
  const isRecord = isObject(value) && Object.values(value).every(isText);
  return problems.check(
    isRecord,
    path,
    value,
    "use names with values in quotes, such as { onlyActive: 'true' }",
  );
}

function checkOptions(options: unknown, problems: Problems): void {
  if (!problems.check(Array.isArray(options), 'request.options', options, 'use a list, which may be empty'))
    return;
  const params = (options as readonly unknown[]).map((option, at) => {
    const path = `request.options[${at}]`;
    if (!problems.check(isObject(option), path, option, 'use { param, meaning, isFilter }')) return null;
    checkOption(option as Unchecked, path, problems);
    return (option as Unchecked).param;
  });
  for (const param of new Set(params.filter((one, at) => one !== null && params.indexOf(one) !== at))) {
    problems.error(`request.options has ${shown(param)} twice: remove one of them`);
  }
}

function checkOption(option: Unchecked, path: string, problems: Problems): void {
  const { values, form, fallback } = option;
  problems.onlyKnown(option, path, OPTION_NAMES);
  problems.text(option, path, 'param', 'use the name of the parameter');
  problems.text(option, path, 'meaning', 'say what it does');
  problems.boolean(option, path, 'isFilter');
  if (fallback !== undefined) {
    problems.check(typeof fallback === 'string', join(path, 'fallback'), fallback, 'use a value in quotes');
  }
  if (values !== undefined) {
    const areValues = Array.isArray(values) && values.every(isText);
    problems.check(areValues, join(path, 'values'), values, 'list values in quotes');
  }
  if (form === undefined) return;
  const isForm =
    isObject(form) && isText(form.pattern) && isText(form.description) && isPattern(form.pattern);
  problems.check(
    isForm,
    join(path, 'form'),
    form,
    "use { pattern: '\\\\d{4}', description: 'a year such as 2024' }",
  );
}

function isPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern) !== null;
  } catch {
    return false;
  }
}

/** Which windows go with which dates of a request, where not all do. */
const DATES_OF_WINDOWS: Readonly<Record<string, readonly string[]>> = {
  range: ['range', 'years', 'spans'],
  session: ['day', 'range'],
  once: ['none'],
};

function checkWindows(
  windows: unknown,
  request: Unchecked,
  of: { readonly name: unknown; readonly names: readonly string[] | undefined },
  problems: Problems,
): void {
  const remedy = "use { per: 'range', days: 30, everyDay: false } or another of the forms";
  if (!problems.check(isObject(windows), 'windows', windows, remedy)) return;
  const policy = windows as Unchecked;
  if (!problems.oneOf(policy, 'windows', 'per', Object.keys(WINDOW_NAMES))) return;
  const per = String(policy.per);
  problems.onlyKnown(policy, 'windows', WINDOW_NAMES[per] ?? []);
  const dates = DATES_OF_WINDOWS[per];
  if (
    dates !== undefined &&
    DATES.includes(String(request.dates)) &&
    !dates.includes(String(request.dates))
  ) {
    const fitting = Object.keys(DATES_OF_WINDOWS).find((one) =>
      DATES_OF_WINDOWS[one]?.includes(String(request.dates)),
    );
    problems.error(
      `windows.per is "${per}", but request.dates is ${shown(request.dates)}: use ${fitting ?? 'instrument'}, or dates ${dates.join(' or ')}`,
    );
  }
  if ((per === 'instrument' || per === 'row') && request.instruments === 'none') {
    problems.error(`windows.per is "${per}", but request.instruments is "none": use one or many`);
  }
  if (per === 'range') checkRange(policy, problems);
  if (per === 'instrument') checkQuestions(policy, problems);
  if (per === 'row') checkRow(policy, of, problems);
}

function checkRange({ days, everyDay, parts }: Unchecked, problems: Problems): void {
  const areDays = Number.isInteger(days) && Number(days) >= 1;
  problems.check(areDays, 'windows.days', days, 'use the longest range of a request in days, such as 30');
  problems.check(typeof everyDay === 'boolean', 'windows.everyDay', everyDay, 'use true or false');
  if (parts === undefined) return;
  const areParts =
    isObject(parts) && isText(parts.param) && isText(parts.column) && Array.isArray(parts.values);
  problems.check(areParts, 'windows.parts', parts, 'use { param, values, column }, or leave it out');
}

function checkQuestions(policy: Unchecked, problems: Problems): void {
  problems.oneOf(policy, 'windows', 'days', ['sessions', 'quarters', 'none']);
  const { questions } = policy;
  const remedy = 'use a function that returns [{ from, to, variant, params }]';
  if (!problems.check(typeof questions === 'function', 'windows.questions', questions, remedy)) return;
  const day = '2025-03-31';
  const asked = { sessions: [day], from: day, to: day, today: day, live: false, options: {} };
  let found: unknown;
  try {
    found = (questions as (input: unknown) => unknown)(asked);
  } catch (error) {
    problems.error(`windows.questions fails for ${day} (${messageOf(error)}): ${remedy}`);
    return;
  }
  const areQuestions =
    Array.isArray(found) &&
    found.every(
      (one) =>
        isObject(one) &&
        [one.from, one.to].every((value) => typeof value === 'string' && isDay(value)) &&
        typeof one.variant === 'string' &&
        isObject(one.params),
    );
  if (!areQuestions) problems.error(`windows.questions returns ${shown(found)} of something else: ${remedy}`);
}

function checkRow(
  { of, instrument, params, day }: Unchecked,
  { name, names }: { readonly name: unknown; readonly names: readonly string[] | undefined },
  problems: Problems,
): void {
  if (
    problems.check(isText(of), 'windows.of', of, 'use the name of the operation whose rows are asked about')
  ) {
    if (of === name) problems.error('windows.of is the operation itself: name another one');
    else if (names !== undefined && !names.includes(String(of))) {
      const similar = didYouMean(String(of), names);
      problems.error(`windows.of is ${shown(of)}: correct the name, or enable the operation${similar}`);
    }
  }
  problems.check(
    isText(instrument),
    'windows.instrument',
    instrument,
    'use the column that names the instrument',
  );
  const areColumns = isObject(params) && Object.values(params).every(isText);
  problems.check(
    areColumns,
    'windows.params',
    params,
    "use columns by parameter, such as { year: 'report_year' }",
  );
  if (day !== undefined) problems.check(isText(day), 'windows.day', day, 'use a column, or leave it out');
}

function checkSchedule(schedule: unknown, windows: Unchecked, problems: Problems): void {
  const remedy = "use { at: '21:30', on: 'daily', hasLookback: true }";
  if (!problems.check(isObject(schedule), 'schedule', schedule, remedy)) return;
  const of = schedule as Unchecked;
  problems.onlyKnown(of, 'schedule', SCHEDULE_NAMES);
  problems.time(of, 'schedule', 'at');
  problems.oneOf(of, 'schedule', 'on', Object.keys(SCHEDULED_WEEKDAYS));
  problems.boolean(of, 'schedule', 'hasLookback');
  if (of.value !== undefined) problems.oneOf(of, 'schedule', 'value', ['prices', 'lists', 'details']);
  if (of.spread === undefined) return;
  if (!problems.check(of.spread === 'week', 'schedule.spread', of.spread, 'use week, or leave it out'))
    return;
  if (of.on !== 'daily' || windows.per !== 'instrument') {
    problems.error(
      'schedule.spread is for instruments that are asked daily: use it with on daily and windows.per instrument',
    );
  }
}

function checkSample(operation: Unchecked, problems: Problems): void {
  const { sample } = operation;
  const remedy = 'use { asked: { exchange, from, to, instruments, params }, answer }';
  if (!problems.check(isObject(sample), 'sample', sample, remedy)) return;
  const { asked, answer } = sample as Unchecked;
  if (problems.check(isObject(asked), 'sample.asked', asked, remedy)) {
    const { exchange, from, to, instruments, params } = asked as Unchecked;
    problems.check(isText(exchange), 'sample.asked.exchange', exchange, 'use a code such as BSE');
    for (const [name, day] of Object.entries({ from, to })) {
      const isRight = typeof day === 'string' && isDay(day);
      problems.check(isRight, `sample.asked.${name}`, day, 'use a day such as 2025-02-27');
    }
    const areNames = Array.isArray(instruments) && instruments.every(isText);
    problems.check(areNames, 'sample.asked.instruments', instruments, 'use a list, which may be empty');
    problems.check(isObject(params), 'sample.asked.params', params, 'use an object, which may be empty');
  }
  checkAnswer(operation, answer, problems);
}

/** Do the records of the sample have what the shapes need? Whether each can be read, only reading it shows. */
function checkAnswer({ shapes, envelope }: Unchecked, answer: unknown, problems: Problems): void {
  // An answer that is no JSON is given as text.
  if (isText(answer)) return;
  const records = recordsOf(answer, isText(envelope) ? envelope : 'value');
  const lists = (Array.isArray(shapes) ? shapes : []).flatMap((shape) =>
    isObject(shape) && Array.isArray(shape.has) ? [shape.has.filter(isText)] : [],
  );
  if (records === null) {
    problems.error(
      `sample.answer is ${shown(answer)}: use an answer of the source, { Value: [ … ] } or a list`,
    );
    return;
  }
  if (lists.length === 0) return;
  records.forEach((record, at) => {
    const has = new Set(isObject(record) ? Object.keys(record).map(plainField) : []);
    const missing = lists.map((list) => list.filter((field) => !has.has(plainField(field))));
    const [fewest = []] = missing.sort((a, b) => a.length - b.length);
    if (fewest.length > 0) {
      problems.error(
        `sample.answer has a record (the ${at + 1}.) of no shape: it lacks ${fewest.join(', ')}; correct shapes[…].has or the sample`,
      );
    }
  });
}

/** The records of an answer in JSON; null if it is none. */
function recordsOf(answer: unknown, envelope: string): readonly unknown[] | null {
  if (Array.isArray(answer)) return answer;
  if (!isObject(answer)) return null;
  for (const name of [envelope.toLowerCase(), 'value']) {
    const list = Object.entries(answer).find(([key]) => key.toLowerCase() === name)?.[1];
    if (Array.isArray(list)) return list;
  }
  return [answer];
}
