import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Calendar } from '../../calendar/calendar.ts';
import { reachOf, today } from '../../core/clock.ts';
import { commonDays, type Day, eachDay } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import type { Pair } from '../../core/exchanges.ts';
import { largestSymbols, storedValues, symbolsOfNames } from '../../load/market/stored-values.ts';
import {
  countResponses,
  instrumentsCoveredEachDay,
  listResponses,
  type ResponseCount,
} from '../../load/state/coverage/coverage.ts';
import type { RunRequest, Target } from '../../load/state/request.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import { variantsOfRun } from '../../load/state/windows/windows.ts';
import {
  isPart,
  isQuarterly,
  type Operation,
  partsOf,
  partVariant,
  settingFor,
} from '../../operations/operation.ts';
import { operationNamed, operations } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { syncSessions, unknownYears, yearRanges } from '../responses/sync-sessions.ts';
import {
  areCovered,
  type Covered,
  classifyCount,
  countsAwaited,
  listedBy,
  markCovered,
  planUnlessWaiting,
  requestKey,
} from './covered.ts';
import { planTargets, planWindows } from './plan-windows.ts';
import type { PlanInput } from './planned-window.ts';

export interface RunPlan {
  /** Generated when they are iterated. */
  readonly windows: Iterable<PlannedWindow>;
  /** Targets that can only be planned when others of this run are loaded, which list what to request. */
  readonly deferred: readonly Target[];
}

/**
 * Plans every target of a request, less what is covered now. Targets that request data per instrument are deferred if
 * the same run is about to load the bhav copies that list the instruments.
 */
export async function planRun(context: Context, request: RunRequest): Promise<RunPlan> {
  await syncSessions(context);
  const years = newUnknownYears(context, request.targets);
  if (years.length > 0)
    context.log.warn(
      { years },
      'no calendar data for these years: Monday to Friday is assumed (EOD_CALENDAR_FILE)',
    );
  return planKnown(context, request, request.targets);
}

/** Plans these targets of a run, but for those that wait for others of them. */
export async function planKnown(
  context: Context,
  request: RunRequest,
  targets: readonly Target[],
): Promise<RunPlan> {
  const listOf = listsOf(context, request);
  const inputs = new Map<Target, PlanInput>();
  const deferred = await planUnlessWaiting(targets, listOf, async (target) => {
    const input = await planInput(context, request, target);
    inputs.set(target, input);
    return () => hasPending(input);
  });
  return { windows: planTargets(targets.flatMap((target) => inputs.get(target) ?? [])), deferred };
}

/** The operation that shows what another one requests in a run; null if none does. */
function listsOf({ config }: Context, { instruments }: RunRequest): (operation: string) => string | null {
  const named = instruments.length > 0 || config.EOD_INSTRUMENTS !== undefined;
  return (name) => {
    const operation = operations.find((one) => one.name === name);
    return operation === undefined ? null : listedBy(operation, named);
  };
}

/** The same for targets, with the exchange. */
export function listOfTargets(context: Context, request: RunRequest): (target: Target) => Pair | null {
  const listOf = listsOf(context, request);
  return ({ operation, exchange }) => {
    const list = listOf(operation);
    return list === null ? null : { operation: list, exchange };
  };
}

function hasPending(input: PlanInput): boolean {
  for (const { state } of planWindows(input)) if (state === 'pending') return true;
  return false;
}

/** Unknown years that were reported, by calendar, so that a scheduler logs them only once. */
const warned = new WeakMap<Calendar, Set<string>>();

/** The years, in words, that the calendar has no data for and that no call with it has returned before. */
export function newUnknownYears(
  { calendar }: Pick<Context, 'calendar'>,
  targets: readonly Target[],
): string[] {
  const before = warned.get(calendar) ?? new Set();
  warned.set(calendar, before);
  const years = targets
    .flatMap(({ exchange, from, to }) => unknownYears({ calendar }, [exchange], { from, to }))
    .filter(({ exchange, year }) => {
      const key = `${exchange} ${year}`;
      return !before.has(key) && before.add(key);
    });
  return yearRanges(years);
}

type PlanRequest = Pick<RunRequest, 'kind' | 'instruments' | 'options' | 'live'>;

/** Far more than any ticker has; longer names would not fit into the index of the coverage table. */
const MAX_INSTRUMENT_LENGTH = 200;

/** Collects everything that the plan of a target depends on. */
export async function planInput(context: Context, request: PlanRequest, target: Target): Promise<PlanInput> {
  const { config, calendar, clock } = context;
  const operation = operationNamed(target.operation);
  const named =
    operation.windows.per === 'instrument' && request.instruments.length === 0
      ? await defaultInstruments(context, target.exchange)
      : request.instruments;
  const instruments = await spelledAsStored(context, target.exchange, named);
  const long = instruments.find((name) => name.length > MAX_INSTRUMENT_LENGTH);
  if (long !== undefined) {
    throw usageError(`"${long.slice(0, 40)}…" is not an instrument: it has ${long.length} characters`);
  }
  const reach = reachOf(clock);
  const daysInReach = reach === undefined ? target : commonDays(target, reach);
  // Quarters are requested by their names, whatever days can be requested.
  const { from, to } = daysInReach === null || isQuarterly(operation) ? target : daysInReach;
  const input = {
    operation,
    exchange: target.exchange,
    from,
    to,
    sessions: daysInReach === null ? [] : sessionsOf(calendar, operation, { ...target, ...daysInReach }),
    reach,
    instruments: [...new Set(instruments)],
    options: request.options,
    refetchFrom: target.refetchFrom,
    today: today(clock, config.EOD_TIMEZONE),
    live: request.live,
    windowDays: windowDays(context, operation),
    seenParts: await storedParts(context, operation, target.exchange),
  };
  return { ...input, covered: await readCovered(context, input) };
}

/** The states in which a request is covered: a day that should have records and was empty is requested again. */
const coveredStates = ({ emptyIsNormal }: Operation) =>
  emptyIsNormal ? (['loaded', 'empty', 'not_published'] as const) : (['loaded'] as const);

/**
 * Spells instruments as the exchange does. The source finds `tcs` as well as `TCS`, but rows and coverage of both would
 * be stored beside each other. Names that no stored symbol has stay as they are: an index is called `Nifty 50`.
 */
async function spelledAsStored(
  { db }: Context,
  exchange: string,
  names: readonly string[],
): Promise<readonly string[]> {
  const unusual = names.filter((name) => name !== name.toUpperCase());
  if (unusual.length === 0) return names;
  const symbols = await symbolsOfNames(db.pool, exchange, unusual);
  return names.map((name) => symbols.get(name) ?? name);
}

/**
 * The sessions of a range. If it has none and the user requests it again, all of its days are taken as sessions: the
 * calendar may be wrong, and only the source can tell.
 */
function sessionsOf(calendar: Calendar, { windows }: Operation, target: Target): Day[] {
  const { exchange, from, to, refetchFrom } = target;
  const sessions = calendar.sessions(exchange, from, to);
  const byDay = windows.per === 'session' || windows.per === 'range';
  return sessions.length === 0 && refetchFrom !== null && byDay ? eachDay(from, to) : sessions;
}

/** The values of an operation's parts that its stored rows of an exchange have. */
async function storedParts({ db }: Context, operation: Operation, exchange: string): Promise<string[]> {
  const parts = partsOf(operation);
  if (parts === undefined) return [];
  const { name } = operation.shapes[0].table;
  return storedValues(db.pool, { name, column: parts.column, exchange });
}

/**
 * Plans the parts that responses of a run have shown and that it has not requested, e.g. a sector that is new or
 * spelled otherwise: without them, companies would be missing.
 */
export async function planSeenParts(
  context: Context,
  runId: number,
  tx: NodePgDatabase,
): Promise<PlannedWindow[]> {
  const inParts = operations.filter((one) => partsOf(one) !== undefined).map(({ name }) => name);
  const found: PlannedWindow[] = [];
  for (const { operation: name, exchange, variants } of await variantsOfRun(tx, runId, inParts)) {
    const operation = operationNamed(name);
    const parts = partsOf(operation);
    // The user may have requested something else than the whole list.
    if (parts === undefined || !variants.some((variant) => isPart(operation, variant))) continue;
    const requested = new Set(variants.map((variant) => variant.toLowerCase()));
    const day = today(context.clock, context.config.EOD_TIMEZONE);
    for (const value of await storedParts(context, operation, exchange)) {
      const variant = partVariant(parts, value);
      if (requested.has(variant.toLowerCase())) continue;
      requested.add(variant.toLowerCase());
      const window: PlannedWindow = {
        operation: name,
        exchange,
        from: day,
        to: day,
        instruments: [],
        params: { [parts.param]: value },
        variant,
        filtered: false,
        state: 'pending',
        reason: null,
      };
      found.push(window);
    }
  }
  return found;
}

/** The longest range of a window in days: from EOD_WINDOW_DAYS or the operation. */
const windowDays = ({ config }: Context, operation: Operation): number | undefined =>
  operation.windows.per === 'range'
    ? (settingFor(config.EOD_WINDOW_DAYS, operation) ?? operation.windows.days)
    : undefined;

/** Reads which requests are covered; only of the planned days and instruments, because coverage grows every night. */
async function readCovered({ db }: Context, input: Omit<PlanInput, 'covered'>) {
  const { operation, refetchFrom } = input;
  const { windows } = operation;
  const days =
    windows.per === 'instrument'
      ? windows.requests(input).map(({ to }) => to)
      : windows.per === 'once'
        ? [input.today]
        : partsOf(operation) === undefined
          ? input.sessions
          : [...input.sessions, input.today];
  const requested = {
    operation: operation.name,
    exchange: input.exchange,
    days: days.filter((day) => refetchFrom === null || day < refetchFrom),
    instruments: operation.request.instruments === 'none' ? [] : input.instruments,
    states: coveredStates(operation),
  };
  const covered = new Map<string, Covered>();
  const some: ResponseCount[] = [];
  for (const count of await countResponses(db.drizzle, requested)) {
    const extent = classifyCount(operation, requested.instruments.length, count);
    if (extent === 'all') covered.set(requestKey(count.day, count.variant), extent);
    if (extent === 'some') some.push(count);
  }
  for (const [key, bits] of await readCoveredInstruments(db.drizzle, operation, requested, some)) {
    covered.set(key, bits);
  }
  return covered;
}

/** How many pairs of an instrument and a day one query lists; the result has a few megabytes. */
const LISTED_PAIRS = 100_000;

/**
 * Reads the instruments for which requests are covered, where these are only some. Most often a few instruments are
 * new among thousands for which everything is covered: one query finds the latter, and only the others are listed day
 * by day.
 */
async function readCoveredInstruments(
  db: NodePgDatabase,
  operation: Operation,
  requested: Parameters<typeof listResponses>[1],
  requests: readonly ResponseCount[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const days = [...new Set(requests.map(({ day }) => day))].sort();
  if (days.length === 0) return new Map();
  const positions = new Map(requested.instruments.map((name, position) => [name, position]));
  const positionsOf = (names: readonly string[]) => names.map((name) => positions.get(name) as number);
  const always = new Map<string, Uint8Array>();
  for (const variant of new Set(requests.map((request) => request.variant))) {
    always.set(variant, new Uint8Array((positions.size + 7) >> 3));
  }
  for (const { variant, instruments } of await instrumentsCoveredEachDay(db, { ...requested, days })) {
    markCovered(always.get(variant), positionsOf(instruments));
  }
  const covered = new Map(
    requests.map(({ day, variant }) => [
      requestKey(day, variant),
      Uint8Array.from(always.get(variant) ?? []),
    ]),
  );
  const countingAwaited = new Set(
    requests
      .filter((request) => countsAwaited(operation, request))
      .map(({ day, variant }) => requestKey(day, variant)),
  );
  const rest = requested.instruments.filter((_, position) =>
    [...always.values()].some((bits) => !areCovered(bits, position, position + 1)),
  );
  const atOnce = Math.max(1, Math.floor(LISTED_PAIRS / rest.length));
  for (let at = 0; rest.length > 0 && at < days.length; at += atOnce) {
    const listed = { ...requested, days: days.slice(at, at + atOnce), instruments: rest };
    for (const { day, variant, awaited, instruments } of await listResponses(db, listed)) {
      const key = requestKey(day, variant);
      if (!awaited || countingAwaited.has(key)) markCovered(covered.get(key), positionsOf(instruments));
    }
  }
  return covered;
}

/**
 * The instruments to request if an operation requests one by one and the user names none: those of EOD_INSTRUMENTS, or
 * the EOD_INSTRUMENT_LIMIT instruments with the largest turnover in the newest stored bhav copy of the exchange. Empty
 * if no bhav copy is stored.
 */
export async function defaultInstruments(
  { config, db }: Pick<Context, 'config' | 'db'>,
  exchange: string,
): Promise<readonly string[]> {
  return config.EOD_INSTRUMENTS ?? largestSymbols(db.pool, exchange, config.EOD_INSTRUMENT_LIMIT);
}
