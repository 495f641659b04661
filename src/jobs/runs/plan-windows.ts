import { addDays, type Day, eachDay } from '../../core/days.ts';
import type { CoveredKey } from '../../load/state/coverage.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import {
  type Ask,
  expectedVariants,
  isQuarterly,
  MAX_INSTRUMENTS_PER_CALL,
  type Operation,
} from '../../operations/operation.ts';

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
  /** What is known already and needs no asking. */
  readonly covered: readonly CoveredKey[];
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
 * Turns a range into windows, with the fewest calls that cover what is not known yet (pure).
 *
 * Sessions that are covered are left out; where a window's range spans a covered session between
 * two that are not, the session rides along: one call instead of two.
 */
export function planWindows(input: PlanInput): PlannedWindow[] {
  switch (input.operation.windows.per) {
    case 'once':
      return planOnce(input);
    case 'instrument':
      return planAsks(input, input.operation.windows.asks);
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

/**
 * Answers whether a question needs no asking. Coverage of the whole exchange covers each instrument. Data that is
 * awaited is asked for again; but where an operation asks instrument by instrument, and most of them have theirs, the
 * few without are left alone. Figures of a quarter come company by company, and each is awaited.
 */
function coverageTest(input: PlanInput): (day: Day, instrument: string, variant: string) => boolean {
  const { windows } = input.operation;
  const quarterly = isQuarterly(input.operation) ? expectedVariants(input.operation) : [];
  const answers = new Map<string, { all: number; awaited: number }>();
  for (const { day, variant, state } of input.covered) {
    const count = answers.get(`${day}|${variant}`) ?? { all: 0, awaited: 0 };
    answers.set(`${day}|${variant}`, count);
    count.all += 1;
    if (state === 'not_published') count.awaited += 1;
  }
  const isAwaited = ({ day, variant }: CoveredKey) => {
    const { all, awaited } = answers.get(`${day}|${variant}`) ?? { all: 0, awaited: 0 };
    return windows.per !== 'instrument' || quarterly?.includes(variant) === true || 2 * awaited > all;
  };
  const known = new Set(
    input.covered
      .filter((key) => key.state !== 'not_published' || !isAwaited(key))
      .map((key) => `${key.day}|${key.instrument}|${key.variant}`),
  );
  return (day, instrument, variant) =>
    (input.refetchFrom === null || day < input.refetchFrom) &&
    (known.has(`${day}||${variant}`) || known.has(`${day}|${instrument}|${variant}`));
}

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

function window(
  input: PlanInput,
  facts: Pick<PlannedWindow, 'from' | 'to'> & Partial<PlannedWindow>,
): PlannedWindow {
  return {
    operation: input.operation.name,
    exchange: input.exchange,
    instruments: [],
    params: ownOptions(input),
    variant: '',
    filtered: isFiltered(input),
    state: 'pending',
    reason: null,
    ...facts,
  };
}

function planOnce(input: PlanInput): PlannedWindow[] {
  const day = input.today;
  const covered = coverageTest(input)(day, '', '');
  return [
    window(input, {
      from: day,
      to: day,
      ...(covered ? { state: 'skipped', reason: `${COVERED} today` } : {}),
    }),
  ];
}

function planDays(input: PlanInput, days: number): PlannedWindow[] {
  if (input.sessions.length === 0) return [noSession(input)];
  const covered = coverageTest(input);
  return instrumentBatches(input.operation, input.instruments).flatMap((instruments) => {
    const asked = instruments.length === 0 ? [''] : instruments;
    const isCovered = (day: Day) => asked.every((instrument) => covered(day, instrument, ''));
    return [
      ...stretches(input, (day) => !isCovered(day), days).map((range) =>
        window(input, { ...range, instruments }),
      ),
      ...skippedStretches(input, isCovered, days).map((range) =>
        window(input, { ...range, instruments, state: 'skipped', reason: COVERED }),
      ),
    ];
  });
}

function noSession(input: PlanInput): PlannedWindow {
  return skipAll(input, `${input.exchange} had no session in this range`);
}

/** The whole range as one window that needs no request. */
function skipAll(input: PlanInput, reason: string): PlannedWindow {
  return window(input, { from: input.from, to: input.to, state: 'skipped', reason });
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

/** Covered sessions outside the planned windows, in stretches of the same length, to be counted. */
function skippedStretches(input: PlanInput, isCovered: (day: Day) => boolean, days: number): Range[] {
  const planned = stretches(input, (day) => !isCovered(day), days);
  const left = input.sessions.filter(
    (day) => isCovered(day) && !planned.some((range) => day >= range.from && day <= range.to),
  );
  const ranges: { from: Day; to: Day }[] = [];
  for (const day of left) {
    const last = ranges.at(-1);
    const between = last !== undefined && planned.some((range) => range.from > last.to && range.to < day);
    if (last !== undefined && !between && day <= addDays(last.from, days - 1)) last.to = day;
    else ranges.push({ from: day, to: day });
  }
  return ranges;
}

function planAsks(input: PlanInput, asksOf: (ask: PlanInput) => readonly Ask[]): PlannedWindow[] {
  const options = Object.entries(ownOptions(input));
  const all = asksOf(input);
  const asks = all.filter((ask) => options.every(([param, value]) => ask.params[param] === value));
  if (asks.length === 0) {
    if (input.sessions.length === 0) return [noSession(input)];
    const wanted = options.map(([param, value]) => ` ${param} ${value}`).join(',');
    const range = `nothing to ask for ${input.from} to ${input.to}`;
    return [skipAll(input, wanted === '' ? range : `${range} with${wanted}`)];
  }
  if (input.instruments.length === 0) {
    return [
      skipAll(
        input,
        `no instruments are known: no bhav copy of ${input.exchange} is stored, and none are named (EOD_INSTRUMENTS)`,
      ),
    ];
  }
  const covered = coverageTest(input);
  return input.instruments.flatMap((instrument) =>
    asks.map((ask) =>
      window(input, {
        from: ask.from,
        to: ask.to,
        instruments: [instrument],
        params: ask.params,
        variant: ask.variant,
        ...(ask.always !== true && covered(ask.to, instrument, ask.variant)
          ? { state: 'skipped', reason: COVERED }
          : {}),
      }),
    ),
  );
}
