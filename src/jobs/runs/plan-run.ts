import type { Calendar } from '../../calendar/calendar.ts';
import { today } from '../../core/clock.ts';
import { type Day, eachDay } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { largestSymbols } from '../../load/market/lookups.ts';
import { readCovered } from '../../load/state/coverage.ts';
import { readRangeLimits } from '../../load/state/range-limits.ts';
import type { RunRequest, Target } from '../../load/state/run-request.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import type { Operation } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { keyHash } from '../worker/quota.ts';
import { type PlanInput, planWindows } from './plan-windows.ts';
import { syncSessions, unknownYears } from './sync-sessions.ts';

/** The operation whose newest file says which instruments are worth asking for one by one. */
const INSTRUMENT_LIST = 'GetBhavCopyCM';

export interface RunPlan {
  readonly windows: readonly PlannedWindow[];
  /** Targets that wait for the bhav copies of this run before they can be planned. */
  readonly deferred: readonly Target[];
}

/**
 * Plans every target of a request against what is covered now. Targets that ask instrument by
 * instrument wait for the bhav copies the same run is about to load, unless instruments are named.
 */
export async function planRun(context: Context, request: RunRequest): Promise<RunPlan> {
  await syncSessions(context);
  warnOfUnknownYears(context, request.targets);
  let windows: PlannedWindow[] = [];
  const deferred: Target[] = [];
  const named = request.instruments.length > 0 || context.config.EOD_INSTRUMENTS !== undefined;
  const immediate = request.targets.filter(
    (target) => named || operationNamed(target.operation).windows.per !== 'instrument',
  );
  // Not as arguments of a push: years of many instruments are more windows than a call can take.
  for (const target of immediate) windows = windows.concat(await planTarget(context, request, target));
  for (const target of request.targets) {
    if (immediate.includes(target)) continue;
    const listComing = windows.some(
      (window) =>
        window.operation === INSTRUMENT_LIST &&
        window.exchange === target.exchange &&
        window.state === 'pending',
    );
    if (listComing) deferred.push(target);
    else windows = windows.concat(await planTarget(context, request, target));
  }
  return { windows: distinct(windows), deferred };
}

/** Years a calendar was found not to know: a scheduler that plans every night says so once. */
const warned = new WeakMap<Calendar, Set<string>>();

function warnOfUnknownYears({ calendar, log }: Context, targets: readonly Target[]): void {
  const before = warned.get(calendar) ?? new Set();
  warned.set(calendar, before);
  const found = targets.flatMap(({ exchange, from, to }) =>
    unknownYears({ calendar }, [exchange], { from, to }),
  );
  const years = [...new Set(found)].filter((year) => !before.has(year)).sort();
  if (years.length === 0) return;
  for (const year of years) before.add(year);
  log.warn({ years }, 'no calendar data for these years: Monday to Friday is assumed (EOD_CALENDAR_FILE)');
}

/** Plans what waited for the bhav copies of its run. */
export async function planDeferred(
  context: Context,
  request: RunRequest,
  targets: readonly Target[],
): Promise<PlannedWindow[]> {
  let windows: PlannedWindow[] = [];
  for (const target of targets) windows = windows.concat(await planTarget(context, request, target));
  return distinct(windows);
}

/**
 * No question is asked twice: two ranges of one operation may need the same one, a quarter's ratios for instance,
 * and so may two operations that ask instrument by instrument, whose variants name their questions.
 */
export function distinct(windows: readonly PlannedWindow[]): PlannedWindow[] {
  const asked = new Map<string, PlannedWindow>();
  return windows.flatMap((window) => {
    const { exchange, variant, from, to, instruments, params, operation } = window;
    const question = JSON.stringify([exchange, from, to, instruments, variant || [operation, params]]);
    const first = asked.get(question);
    if (first === undefined || (first.state === 'skipped' && first.operation === operation)) {
      asked.set(question, window);
      return first?.state === window.state ? [] : [window];
    }
    if (first.operation === operation) return [];
    return [{ ...window, state: 'skipped' as const, reason: `the same question as ${first.operation}'s` }];
  });
}

/** Plans one target; for operations that ask per instrument this looks the instruments up. */
async function planTarget(context: Context, request: PlanRequest, target: Target): Promise<PlannedWindow[]> {
  return planWindows(await planInput(context, request, target));
}

type PlanRequest = Pick<RunRequest, 'instruments' | 'options' | 'live'>;

/** No ticker comes near; longer names would not fit the index of the coverage. */
const MAX_INSTRUMENT = 200;

/** All that the plan of a target depends on, gathered. */
export async function planInput(context: Context, request: PlanRequest, target: Target): Promise<PlanInput> {
  const { config, calendar, clock } = context;
  const operation = operationNamed(target.operation);
  const instruments =
    operation.windows.per === 'instrument' && request.instruments.length === 0
      ? await defaultInstruments(context, target.exchange)
      : request.instruments;
  const long = instruments.find((name) => name.length > MAX_INSTRUMENT);
  if (long !== undefined) {
    throw usageError(`"${long.slice(0, 40)}…" is no instrument: it has ${long.length} characters`);
  }
  const input = {
    operation,
    exchange: target.exchange,
    from: target.from,
    to: target.to,
    sessions: sessionsOf(calendar, operation, target),
    instruments,
    options: request.options,
    refetchFrom: target.refetchFrom,
    today: today(clock, config.EOD_TIMEZONE),
    live: request.live,
    windowDays: await windowDays(context, operation),
  };
  return { ...input, covered: await coveredBy(context, input) };
}

/**
 * The sessions of a range. Closed days alone, asked for again by hand, are asked for as they are:
 * the calendar may be wrong, and only the source knows.
 */
function sessionsOf(calendar: Calendar, { windows }: Operation, target: Target): Day[] {
  const { exchange, from, to, refetchFrom } = target;
  const sessions = calendar.sessions(exchange, from, to);
  const byDay = windows.per === 'session' || windows.per === 'range';
  return sessions.length === 0 && refetchFrom !== null && byDay ? eachDay(from, to) : sessions;
}

/** The configured length of a window, or the operation's own, as far as the source allows it. */
async function windowDays({ config, db }: Context, operation: Operation): Promise<number | undefined> {
  if (operation.windows.per !== 'range') return undefined;
  const wanted = config.EOD_WINDOW_DAYS[operation.name] ?? operation.windows.days;
  const limits = await readRangeLimits(db.drizzle, keyHash(config.EOD_ACCESS_KEY ?? ''));
  return Math.min(wanted, limits.get(operation.name) ?? wanted);
}

/** What is known of the very days and instruments that the plan asks about: coverage grows with every night. */
async function coveredBy({ db }: Context, input: Omit<PlanInput, 'covered'>) {
  const { operation, exchange, sessions, instruments, refetchFrom } = input;
  const { windows } = operation;
  const asked =
    windows.per === 'instrument'
      ? windows.asks(input).map(({ to }) => to)
      : windows.per === 'once'
        ? [input.today]
        : sessions;
  return readCovered(db.drizzle, {
    operation: operation.name,
    exchange,
    days: [...new Set(asked)].filter((day) => refetchFrom === null || day < refetchFrom),
    instruments,
    // A day that should hold records and was empty is worth asking again.
    states: operation.emptyIsNormal ? ['loaded', 'empty', 'not_published'] : ['loaded'],
  });
}

/**
 * Which instruments to ask for where an operation asks one by one and nobody named any: those of
 * EOD_INSTRUMENTS, or else the EOD_INSTRUMENT_LIMIT with the largest turnover in the newest stored
 * bhav copy of the exchange. Empty where no bhav copy is stored.
 */
export async function defaultInstruments(
  { config, db }: Pick<Context, 'config' | 'db'>,
  exchange: string,
): Promise<readonly string[]> {
  return config.EOD_INSTRUMENTS ?? largestSymbols(db.pool, exchange, config.EOD_INSTRUMENT_LIMIT);
}
