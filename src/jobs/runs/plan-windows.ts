import { addDays, commonDays, type Day, type DayRange, eachDay } from '../../core/days.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import { AHEAD, type InstrumentRequest, isDated, partsOf, partVariant } from '../../operations/operation.ts';
import { areCovered, type Covered, requestKey } from './covered.ts';
import {
  COVERED,
  declaredOptions,
  furtherOptions,
  instrumentBatches,
  KNOWN,
  ownOptions,
  type PlanInput,
  type PlannedRange,
  REQUESTED,
  sharedFields,
  skipAll,
  windowOf,
} from './planned-window.ts';

/**
 * Plans the windows of several targets, one target after the other (pure). Windows are generated whenever the result is
 * iterated, not stored: years of thousands of instruments are millions of windows.
 *
 * Nothing is requested twice. Two ranges of an operation may need the same response, e.g. the ratios of a quarter, and
 * so may two operations that request data per instrument and have the same variant of a request.
 */
export function planTargets(inputs: readonly PlanInput[]): Iterable<PlannedWindow> {
  const repeated = repeatedRequests(inputs);
  return {
    *[Symbol.iterator]() {
      const requested = new Map<string, PlannedWindow>();
      for (const input of inputs) {
        for (const window of planWindows(input, repeated)) {
          const mayRepeat = repeated.size > 0 && repeated.has(requestOf(window));
          const planned = mayRepeat ? skipRepeated(requested, window) : window;
          if (planned !== null) yield planned;
        }
      }
    },
  };
}

/** The key of a request; an operation without variants has one key for all of its requests about an exchange. */
const requestOf = ({
  operation,
  exchange,
  variant,
  from,
  to,
}: Pick<PlannedWindow, 'operation' | 'exchange' | 'variant' | 'from' | 'to'>) =>
  variant === '' ? `${exchange}|${operation}` : `${exchange}|${variant}|${from}|${to}`;

/** The requests that more than one target may make; only their planned windows have to be remembered. */
function repeatedRequests(inputs: readonly PlanInput[]): ReadonlySet<string> {
  const once = new Set<string>();
  const repeated = new Set<string>();
  for (const input of inputs) {
    const { exchange, operation } = input;
    const own = [{ variant: '', from: '', to: '' }, ...chosenRequests(input)];
    for (const request of new Set(
      own.map((one) => requestOf({ ...one, exchange, operation: operation.name })),
    )) {
      (once.has(request) ? repeated : once).add(request);
    }
  }
  return repeated;
}

/**
 * Compares a window with those planned before it.
 *
 * @returns the window to plan, which is a skipped one if another operation makes the request; null if this operation
 *   has planned the window already.
 */
function skipRepeated(requested: Map<string, PlannedWindow>, window: PlannedWindow): PlannedWindow | null {
  const { exchange, variant, from, to, instruments, params, operation } = window;
  const request = JSON.stringify([exchange, from, to, instruments, variant || [operation, params]]);
  const first = requested.get(request);
  if (first === undefined || (first.state === 'skipped' && first.operation === operation)) {
    requested.set(request, window);
    return first?.state === window.state ? null : window;
  }
  if (first.operation === operation) return null;
  return { ...window, state: 'skipped', reason: `the same request as ${first.operation}'s` };
}

/**
 * Divides a range into windows, with the fewest calls that get what is not loaded yet (pure).
 *
 * Covered sessions are left out, unless they lie between two missing ones within the range of one window: then one call
 * for all of them is better than two.
 *
 * @param repeated requests that several targets make: each keeps a window of its own, see `requestRanges`.
 */
export function planWindows(
  input: PlanInput,
  repeated: ReadonlySet<string> = new Set(),
): Iterable<PlannedWindow> {
  switch (input.operation.windows.per) {
    case 'once':
      return planOnce(input);
    case 'instrument':
      return planRequests(input, repeated);
    case 'session':
      return planDays(input, 1);
    case 'range':
      return isRequestedByDays(input)
        ? planDaysAndParts(input, input.windowDays ?? input.operation.windows.days)
        : planUndated(input);
  }
}

/** The instruments for which a request about a day is covered; undefined: none, or the request is requested again. */
function coveredFor({ covered, refetchFrom }: PlanInput, day: Day, variant: string): Covered | undefined {
  return refetchFrom === null || day < refetchFrom ? covered.get(requestKey(day, variant)) : undefined;
}

/** True if some requests are covered for only some instruments. If not, all instruments have the same windows. */
const instrumentsDiffer = (extents: Iterable<Covered | undefined>) =>
  [...extents].some((extent) => extent !== undefined && extent !== 'all');

/** One window, of the day of the call, unless it is covered. */
function planOnce(input: PlanInput): PlannedWindow[] {
  const day = input.today;
  const isKnown = coveredFor(input, day, '') === 'all';
  const outcome = isKnown ? ({ state: 'skipped', reason: `${COVERED} today` } as const) : REQUESTED;
  const range = { from: day, to: day, params: ownOptions(input), variant: '', ...outcome };
  return [windowOf(sharedFields(input), range, [])];
}

/** True if its requests are sent with their days. Those with some filters are not. */
const isRequestedByDays = (input: PlanInput) =>
  isDated(input.operation, { params: ownOptions(input), instruments: input.instruments });

/** One window for each call's instruments, without dates; its response says nothing about any day. */
function planUndated(input: PlanInput): PlannedWindow[] {
  const { today: day } = input;
  const range = { from: day, to: day, params: ownOptions(input), variant: '', ...REQUESTED };
  return instrumentBatches(input.operation, input.instruments).map((instruments) => ({
    ...windowOf(sharedFields(input), range, instruments),
    filtered: true,
  }));
}

function* planDaysAndParts(input: PlanInput, days: number): Generator<PlannedWindow> {
  yield* planParts(input);
  yield* planDays(input, days);
  yield* planAhead(input, days);
}

/**
 * The days to come that a night requests, if records may be of such days. They are requested each night, in windows of
 * their own: a response says nothing about the coverage of sessions, and the source may refuse days to come.
 */
function* planAhead(input: PlanInput, days: number): Generator<PlannedWindow> {
  const { operation, today, live, reach } = input;
  if (operation.windows.per !== 'range' || !live) return;
  const ahead = addDays(today, operation.windows.ahead ?? 0);
  const last = reach !== undefined && reach.to < ahead ? reach.to : ahead;
  const shared = { ...sharedFields(input), filtered: true };
  for (const instruments of instrumentBatches(operation, input.instruments)) {
    for (let from = addDays(today, 1); from <= last; from = addDays(from, days)) {
      const end = addDays(from, days - 1);
      const range = {
        from,
        to: end < last ? end : last,
        params: ownOptions(input),
        variant: AHEAD,
        ...REQUESTED,
      };
      yield windowOf(shared, range, instruments);
    }
  }
}

/** One window for each part that is not covered today: those that the operation declares and those that are stored. */
function planParts(input: PlanInput): PlannedWindow[] {
  const parts = partsOf(input.operation);
  if (parts === undefined) return [];
  const { today: day, seenParts = [] } = input;
  const values = new Map([...seenParts, ...parts.values].map((value) => [value.toLowerCase(), value]));
  const shared = sharedFields(input);
  return [...values.values()].sort().map((value) => {
    const variant = partVariant(parts, value);
    const isKnown = coveredFor(input, day, variant) === 'all';
    const outcome = isKnown ? ({ state: 'skipped', reason: `${COVERED} today` } as const) : REQUESTED;
    const params = { ...ownOptions(input), [parts.param]: value };
    return windowOf(shared, { from: day, to: day, params, variant, ...outcome }, []);
  });
}

function* planDays(input: PlanInput, days: number): Generator<PlannedWindow> {
  if (input.sessions.length === 0) {
    yield noSession(input);
    return;
  }
  const extents = new Map(input.sessions.map((day) => [day, coveredFor(input, day, '')]));
  const different = instrumentsDiffer(extents.values());
  const shared = sharedFields(input);
  let ranges: PlannedRange[] | undefined;
  let first = 0;
  for (const instruments of instrumentBatches(input.operation, input.instruments)) {
    const last = first + instruments.length;
    if (ranges === undefined || different) {
      ranges = splitDays(input, (day) => areCovered(extents.get(day), first, last), days);
    }
    for (const range of ranges) yield windowOf(shared, range, instruments);
    first = last;
  }
}

function noSession(input: PlanInput): PlannedWindow {
  const { reach, exchange } = input;
  const isOutOfReach = reach !== undefined && commonDays(input, reach) === null;
  return skipAll(input, isOutOfReach ? reach.reason : `${exchange} had no trading day in this range`);
}

/** The fewest ranges of at most `days` calendar days that contain every needed day. */
function fewestRanges(input: PlanInput, needed: (day: Day) => boolean, days: number): DayRange[] {
  const policy = input.operation.windows;
  const wanted =
    policy.per === 'range' && policy.everyDay ? withClosedDays(input, needed) : input.sessions.filter(needed);
  const ranges: { from: Day; to: Day; limit: Day }[] = [];
  for (const day of wanted) {
    const last = ranges.at(-1);
    if (last !== undefined && day <= last.limit) last.to = day;
    else ranges.push({ from: day, to: day, limit: addDays(day, days - 1) });
  }
  return ranges.map(({ from, to }) => ({ from, to }));
}

/**
 * The needed sessions, and the closed days before and after them: some operations have records of days that are not
 * sessions, and these belong to the session next to them.
 */
function withClosedDays({ from, to, sessions }: PlanInput, needed: (day: Day) => boolean): Day[] {
  const wanted: Day[] = [];
  let next = 0;
  let beforeNeeded = false;
  for (const day of eachDay(from, to)) {
    const session = sessions[next];
    const nextNeeded = session !== undefined && needed(session);
    if (nextNeeded || (beforeNeeded && day !== session)) wanted.push(day);
    if (day !== session) continue;
    beforeNeeded = nextNeeded;
    next += 1;
  }
  return wanted;
}

/**
 * Ranges to request, which contain every day that is not covered, and skipped ranges of up to the same length with the
 * other sessions.
 */
function splitDays(input: PlanInput, isCovered: (day: Day) => boolean, days: number) {
  const needed = fewestRanges(input, (day) => !isCovered(day), days);
  const known: { from: Day; to: Day }[] = [];
  /** Index of the first needed range that does not end before the day. */
  let next = 0;
  /** Index of the needed range that follows the last of `known`. */
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
    ...needed.map((range): PlannedRange => ({ ...range, params, variant: '', ...REQUESTED })),
    ...known.map((range): PlannedRange => ({ ...range, params, variant: '', ...KNOWN })),
  ];
}

/** The requests of an operation that requests data per instrument, limited to those with the chosen options. */
function chosenRequests(input: PlanInput): readonly InstrumentRequest[] {
  const { windows } = input.operation;
  if (windows.per !== 'instrument') return [];
  const options = Object.entries(declaredOptions(input));
  const further = furtherOptions(input);
  const chosen = windows
    .requests(input)
    .filter(({ params }) => options.every(([param, value]) => params[param] === value));
  if (Object.keys(further).length === 0) return chosen;
  return chosen.map((request) => ({
    ...request,
    params: { ...request.params, ...further },
    // It may be another request than the one that is covered.
    always: true,
  }));
}

function* planRequests(input: PlanInput, repeated: ReadonlySet<string>): Generator<PlannedWindow> {
  const { operation, exchange, from, to } = input;
  const chosen = chosenRequests(input);
  if (chosen.length === 0) {
    if (input.sessions.length === 0) {
      yield noSession(input);
      return;
    }
    const wanted = Object.entries(ownOptions(input)).map(([param, value]) => ` ${param} ${value}`);
    const range = `nothing to request ${from} to ${to}`;
    yield skipAll(input, wanted.length === 0 ? range : `${range} with${wanted.join(',')}`);
    return;
  }
  if (input.instruments.length === 0) {
    yield skipAll(
      input,
      `no instruments are known: no prices of ${exchange} are stored, and none are named (EOD_INSTRUMENTS)`,
    );
    return;
  }
  const params = new Map<string, InstrumentRequest['params']>();
  const requests = chosen.map((request): PlannedRequest => {
    const covered = request.always === true ? undefined : coveredFor(input, request.to, request.variant);
    // Equal params become one object, because they are compared millions of times.
    const before = params.get(request.variant) ?? request.params;
    params.set(request.variant, sameParams(before, request.params) ? before : request.params);
    return {
      request: { ...request, params: params.get(request.variant) ?? request.params },
      covered,
      isRepeated: repeated.has(requestOf({ ...request, exchange, operation: operation.name })),
    };
  });
  const different = instrumentsDiffer(requests.map(({ covered }) => covered));
  const shared = sharedFields(input);
  const groups = different ? groupsOf(input, requests) : [{ position: 0, instruments: input.instruments }];
  for (const { position, instruments } of groups) {
    const ranges = requestRanges(requests, position);
    for (const batch of instrumentBatches(operation, instruments)) {
      for (const range of ranges) yield windowOf(shared, range, batch);
    }
  }
}

/** Instruments with the same covered requests, in their order; `position` is that of the first. */
interface InstrumentGroup {
  readonly position: number;
  readonly instruments: readonly string[];
}

/** The instruments that one call can request together: those with the same covered requests if it takes many. */
function groupsOf(
  { operation, instruments }: PlanInput,
  requests: readonly PlannedRequest[],
): InstrumentGroup[] {
  if (operation.request.instruments !== 'many') {
    return instruments.map((instrument, position) => ({ position, instruments: [instrument] }));
  }
  const groups = new Map<string, { position: number; instruments: string[] }>();
  for (const [position, instrument] of instruments.entries()) {
    const known = requests
      .map(({ covered }) => (areCovered(covered, position, position + 1) ? '1' : '0'))
      .join('');
    const group = groups.get(known);
    if (group === undefined) groups.set(known, { position, instruments: [instrument] });
    else group.instruments.push(instrument);
  }
  return [...groups.values()];
}

interface PlannedRequest {
  readonly request: InstrumentRequest;
  readonly covered: Covered | undefined;
  /** True if another target makes it too. */
  readonly isRepeated: boolean;
}

type RequestRange = { -readonly [Name in keyof PlannedRange]: PlannedRange[Name] };

/**
 * The ranges for one instrument. Each request to make has its own; consecutive covered requests of one variant are
 * joined into one skipped range with the parameters that they share, because years have thousands of them. Requests
 * that another target makes too are not joined, so that they can be compared.
 */
function requestRanges(requests: readonly PlannedRequest[], position: number): RequestRange[] {
  const ranges: RequestRange[] = [];
  const open = new Map<string, RequestRange>();
  for (const { request, covered, isRepeated } of requests) {
    const { variant, from, to, params } = request;
    const isKnown = areCovered(covered, position, position + 1);
    const last = isKnown && !isRepeated ? open.get(variant) : undefined;
    if (last !== undefined) {
      last.to = to;
      last.params = sharedParams(last.params, params);
      continue;
    }
    const range: RequestRange = { variant, from, to, params, ...(isKnown ? KNOWN : REQUESTED) };
    ranges.push(range);
    if (isKnown && !isRepeated) open.set(variant, range);
    else open.delete(variant);
  }
  return ranges;
}

const sameParams = (some: InstrumentRequest['params'], others: InstrumentRequest['params']) =>
  JSON.stringify(some) === JSON.stringify(others);

function sharedParams(
  some: InstrumentRequest['params'],
  others: InstrumentRequest['params'],
): InstrumentRequest['params'] {
  if (some === others) return some;
  return Object.fromEntries(Object.entries(some).filter(([param, value]) => others[param] === value));
}
