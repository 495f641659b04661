import { addDays, type Day, eachDay } from '../../core/days.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import { type Ask, MAX_INSTRUMENTS_PER_CALL, type Operation } from '../../operations/operation.ts';
import { type Answered, areAnswered, questionKey } from './answered.ts';

export interface PlanInput {
  readonly operation: Operation;
  readonly exchange: string;
  readonly from: Day;
  readonly to: Day;
  /** Sessions of the exchange from `from` to `to`. */
  readonly sessions: readonly Day[];
  /** Instruments to ask for; empty means the whole exchange, where the operation can. */
  readonly instruments: readonly string[];
  /** Request options set by hand, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
  /** What is known already and needs no asking, by `questionKey`. */
  readonly answered: ReadonlyMap<string, Answered>;
  /** From this day on, what is known is asked for again. */
  readonly refetchFrom: Day | null;
  readonly today: Day;
  /** A nightly run of today. */
  readonly live: boolean;
  /** Longest range of a window in days; the operation's own where not set. */
  readonly windowDays?: number | undefined;
}

const COVERED = 'loaded already';

/**
 * The windows of several targets, one target after the other, made as they are read and as often as they are read: years
 * of thousands of instruments are millions of them (pure).
 *
 * No question is asked twice: two ranges of one operation may need the same one, a quarter's ratios for instance,
 * and so may two operations that ask instrument by instrument, whose variants name their questions.
 */
export function planTargets(inputs: readonly PlanInput[]): Iterable<PlannedWindow> {
  const repeated = repeatedQuestions(inputs);
  return {
    *[Symbol.iterator]() {
      const asked = new Map<string, PlannedWindow>();
      for (const input of inputs) {
        for (const window of planWindows(input, repeated)) {
          const mayRepeat = repeated.size > 0 && repeated.has(questionOf(window));
          const told = mayRepeat ? toldOnce(asked, window) : window;
          if (told !== null) yield told;
        }
      }
    },
  };
}

/** Names a question of an exchange; where an operation has only one about a day, all its questions together. */
const questionOf = ({
  operation,
  exchange,
  variant,
  from,
  to,
}: Pick<PlannedWindow, 'operation' | 'exchange' | 'variant' | 'from' | 'to'>) =>
  variant === '' ? `${exchange}|${operation}` : `${exchange}|${variant}|${from}|${to}`;

/** Questions that more than one target may ask: only of these it is kept which windows were planned. */
function repeatedQuestions(inputs: readonly PlanInput[]): ReadonlySet<string> {
  const once = new Set<string>();
  const repeated = new Set<string>();
  for (const input of inputs) {
    const { exchange, operation } = input;
    const own = [{ variant: '', from: '', to: '' }, ...chosenAsks(input)];
    for (const question of new Set(
      own.map((ask) => questionOf({ ...ask, exchange, operation: operation.name })),
    )) {
      (once.has(question) ? repeated : once).add(question);
    }
  }
  return repeated;
}

/** The window as it is to be planned after those asked before; null where one of them is the same. */
function toldOnce(asked: Map<string, PlannedWindow>, window: PlannedWindow): PlannedWindow | null {
  const { exchange, variant, from, to, instruments, params, operation } = window;
  const question = JSON.stringify([exchange, from, to, instruments, variant || [operation, params]]);
  const first = asked.get(question);
  if (first === undefined || (first.state === 'skipped' && first.operation === operation)) {
    asked.set(question, window);
    return first?.state === window.state ? null : window;
  }
  if (first.operation === operation) return null;
  return { ...window, state: 'skipped', reason: `the same question as ${first.operation}'s` };
}

/**
 * Turns a range into windows, with the fewest calls that cover what is not known yet (pure).
 *
 * Sessions that are covered are left out; where a window's range spans a covered session between
 * two that are not, the session rides along: one call instead of two.
 *
 * @param apart questions that are not put together where they are known, see `askedRanges`.
 */
export function planWindows(
  input: PlanInput,
  apart: ReadonlySet<string> = new Set(),
): Iterable<PlannedWindow> {
  switch (input.operation.windows.per) {
    case 'once':
      return [planOnce(input)];
    case 'instrument':
      return planAsks(input, apart);
    case 'session':
      return planDays(input, 1);
    case 'range':
      return planDays(input, input.windowDays ?? input.operation.windows.days);
  }
}

/** Symbols of one call each: lists of 25, single symbols, or the whole exchange (an empty list). */
export function instrumentBatches(operation: Operation, instruments: readonly string[]): string[][] {
  const size = { none: 0, one: 1, many: MAX_INSTRUMENTS_PER_CALL }[operation.request.instruments];
  if (size === 0 || instruments.length === 0) return [[]];
  const batches: string[][] = [];
  for (let at = 0; at < instruments.length; at += size) batches.push(instruments.slice(at, at + size));
  return batches;
}

/** Who has an answer to a question about a day; undefined: nobody, or it is asked again. */
function answerOf({ answered, refetchFrom }: PlanInput, day: Day, variant: string): Answered | undefined {
  return refetchFrom === null || day < refetchFrom ? answered.get(questionKey(day, variant)) : undefined;
}

/** Do some instruments have an answer where others have none? If not, all of them have the same windows. */
const differ = (answers: Iterable<Answered | undefined>) =>
  [...answers].some((answer) => answer !== undefined && answer !== 'all');

/** Options the operation declares; the others belong to other operations of the run. */
function ownOptions({ operation, options }: PlanInput): Record<string, string> {
  const declared = new Set(operation.request.options.map((option) => option.param));
  return Object.fromEntries(Object.entries(options).filter(([param]) => declared.has(param)));
}

function isFiltered({ operation, options }: PlanInput): boolean {
  return operation.request.options.some(
    (option) =>
      option.filters && options[option.param] !== undefined && options[option.param] !== option.fallback,
  );
}

/** What all windows of a target have in common. */
function common(input: PlanInput): Pick<PlannedWindow, 'operation' | 'exchange' | 'filtered'> {
  return { operation: input.operation.name, exchange: input.exchange, filtered: isFiltered(input) };
}

/** What is asked at once, or need not be; the same for many instruments. */
type PlannedRange = Pick<PlannedWindow, 'from' | 'to' | 'params' | 'variant' | 'state' | 'reason'>;

/** Field by field, which is several times as fast as by spreading, and there may be millions. */
function windowOf(
  { operation, exchange, filtered }: ReturnType<typeof common>,
  { from, to, params, variant, state, reason }: PlannedRange,
  instruments: readonly string[],
): PlannedWindow {
  return { operation, exchange, from, to, instruments, params, variant, filtered, state, reason };
}

const KNOWN = { state: 'skipped', reason: COVERED } as const;
const ASKED = { state: 'pending', reason: null } as const;

function planOnce(input: PlanInput): PlannedWindow {
  const day = input.today;
  const isKnown = answerOf(input, day, '') === 'all';
  const outcome = isKnown ? ({ state: 'skipped', reason: `${COVERED} today` } as const) : ASKED;
  return windowOf(
    common(input),
    { from: day, to: day, params: ownOptions(input), variant: '', ...outcome },
    [],
  );
}

function* planDays(input: PlanInput, days: number): Generator<PlannedWindow> {
  if (input.sessions.length === 0) {
    yield noSession(input);
    return;
  }
  const answers = new Map(input.sessions.map((day) => [day, answerOf(input, day, '')]));
  const different = differ(answers.values());
  const shared = common(input);
  let ranges: PlannedRange[] | undefined;
  let first = 0;
  for (const instruments of instrumentBatches(input.operation, input.instruments)) {
    const last = first + instruments.length;
    if (ranges === undefined || different) {
      ranges = splitDays(input, (day) => areAnswered(answers.get(day), first, last), days);
    }
    for (const range of ranges) yield windowOf(shared, range, instruments);
    first = last;
  }
}

function noSession(input: PlanInput): PlannedWindow {
  return skipAll(input, `${input.exchange} had no session in this range`);
}

/** The whole range as one window that needs no request. */
function skipAll(input: PlanInput, reason: string): PlannedWindow {
  const { from, to } = input;
  const range = { from, to, params: ownOptions(input), variant: '', state: 'skipped', reason } as const;
  return windowOf(common(input), range, []);
}

interface Range {
  readonly from: Day;
  readonly to: Day;
}

/** The fewest ranges of at most `days` calendar days that hold every needed day. */
function stretches(input: PlanInput, needed: (day: Day) => boolean, days: number): Range[] {
  const policy = input.operation.windows;
  const wanted =
    policy.per === 'range' && policy.everyDay ? owedDays(input, needed) : input.sessions.filter(needed);
  const ranges: { from: Day; to: Day; limit: Day }[] = [];
  for (const day of wanted) {
    const last = ranges.at(-1);
    if (last !== undefined && day <= last.limit) last.to = day;
    else ranges.push({ from: day, to: day, limit: addDays(day, days - 1) });
  }
  return ranges.map(({ from, to }) => ({ from, to }));
}

/**
 * Needed sessions and the closed days beside them: records of some operations carry days that are
 * no session, and those come with the session before or after.
 */
function owedDays({ from, to, sessions }: PlanInput, needed: (day: Day) => boolean): Day[] {
  const owed: Day[] = [];
  let next = 0;
  let beforeNeeded = false;
  for (const day of eachDay(from, to)) {
    const session = sessions[next];
    const nextNeeded = session !== undefined && needed(session);
    if (nextNeeded || (beforeNeeded && day !== session)) owed.push(day);
    if (day !== session) continue;
    beforeNeeded = nextNeeded;
    next += 1;
  }
  return owed;
}

/** Ranges that hold every day that is not covered, and the covered sessions outside of them in ranges of the same length, to be counted. */
function splitDays(input: PlanInput, isCovered: (day: Day) => boolean, days: number) {
  const needed = stretches(input, (day) => !isCovered(day), days);
  const known: { from: Day; to: Day }[] = [];
  /** The first range that does not end before the day; and the one before which the last of `known` lies. */
  let next = 0;
  let before = 0;
  for (const day of input.sessions) {
    while ((needed[next]?.to ?? day) < day) next += 1;
    const range = needed[next];
    if (range !== undefined && range.from <= day) continue;
    const last = known.at(-1);
    if (last !== undefined && next === before && day <= addDays(last.from, days - 1)) last.to = day;
    else known.push({ from: day, to: day });
    before = next;
  }
  const params = ownOptions(input);
  return [
    ...needed.map((range): PlannedRange => ({ ...range, params, variant: '', ...ASKED })),
    ...known.map((range): PlannedRange => ({ ...range, params, variant: '', ...KNOWN })),
  ];
}

/** The questions of an operation that asks instrument by instrument, as far as the options choose them. */
function chosenAsks(input: PlanInput): readonly Ask[] {
  const { windows } = input.operation;
  if (windows.per !== 'instrument') return [];
  const options = Object.entries(ownOptions(input));
  return windows.asks(input).filter((ask) => options.every(([param, value]) => ask.params[param] === value));
}

function* planAsks(input: PlanInput, apart: ReadonlySet<string>): Generator<PlannedWindow> {
  const { operation, exchange, from, to } = input;
  const asks = chosenAsks(input);
  if (asks.length === 0) {
    if (input.sessions.length === 0) {
      yield noSession(input);
      return;
    }
    const wanted = Object.entries(ownOptions(input)).map(([param, value]) => ` ${param} ${value}`);
    const range = `nothing to ask for ${from} to ${to}`;
    yield skipAll(input, wanted.length === 0 ? range : `${range} with${wanted.join(',')}`);
    return;
  }
  if (input.instruments.length === 0) {
    yield skipAll(
      input,
      `no instruments are known: no bhav copy of ${exchange} is stored, and none are named (EOD_INSTRUMENTS)`,
    );
    return;
  }
  const params = new Map<string, Ask['params']>();
  const questions = asks.map((ask): Question => {
    const answer = ask.always === true ? undefined : answerOf(input, ask.to, ask.variant);
    // Often those of the question before: then one object, which is compared millions of times.
    const before = params.get(ask.variant) ?? ask.params;
    params.set(ask.variant, sameParams(before, ask.params) ? before : ask.params);
    return {
      ask: { ...ask, params: params.get(ask.variant) ?? ask.params },
      answer,
      apart: apart.has(questionOf({ ...ask, exchange, operation: operation.name })),
    };
  });
  const different = differ(questions.map(({ answer }) => answer));
  const shared = common(input);
  let ranges: AskedRange[] | undefined;
  for (const [place, instrument] of input.instruments.entries()) {
    if (ranges === undefined || different) ranges = askedRanges(questions, place);
    for (const range of ranges) yield windowOf(shared, range, [instrument]);
  }
}

interface Question {
  readonly ask: Ask;
  readonly answer: Answered | undefined;
  /** Is it to be told by itself, because another target asks it too? */
  readonly apart: boolean;
}

type AskedRange = { -readonly [Name in keyof PlannedRange]: PlannedRange[Name] };

/**
 * The questions about one instrument. Those that are known are not told one by one, as years have thousands of them: those
 * of one variant that follow each other are one range, with the parameters that they share.
 */
function askedRanges(questions: readonly Question[], place: number): AskedRange[] {
  const ranges: AskedRange[] = [];
  const open = new Map<string, AskedRange>();
  for (const { ask, answer, apart } of questions) {
    const { variant, from, to, params } = ask;
    const isKnown = areAnswered(answer, place, place + 1);
    const last = isKnown && !apart ? open.get(variant) : undefined;
    if (last !== undefined) {
      last.to = to;
      last.params = sharedParams(last.params, params);
      continue;
    }
    const range: AskedRange = { variant, from, to, params, ...(isKnown ? KNOWN : ASKED) };
    ranges.push(range);
    if (isKnown && !apart) open.set(variant, range);
    else open.delete(variant);
  }
  return ranges;
}

const sameParams = (some: Ask['params'], others: Ask['params']) =>
  JSON.stringify(some) === JSON.stringify(others);

function sharedParams(some: Ask['params'], others: Ask['params']): Ask['params'] {
  if (some === others) return some;
  return Object.fromEntries(Object.entries(some).filter(([param, value]) => others[param] === value));
}
