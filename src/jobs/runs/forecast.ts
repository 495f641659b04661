import { today } from '../../core/clock.ts';
import { addDays, DAY_MS, type Day, type DayRange, epochOf } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import type { RunKind, RunRequest, Target } from '../../load/state/request.ts';
import { medianWindowSeconds } from '../../load/state/runs/outcomes.ts';
import { readHour } from '../../load/state/source/call-budget.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import { requestMinutes } from '../../operations/night-times.ts';
import { isQuarterly } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import { requestedOperations } from '../../operations/requested.ts';
import type { Context } from '../context.ts';
import { type CallGroup, expectedFinish, type Pace, spreadCalls } from '../policy/call-pace.ts';
import { callLimitOf, callsOf, hourStart } from '../policy/quota.ts';
import { classOf, isDetailClass, recencyOf, worthOf } from '../queue/call-order.ts';
import { queueOf } from '../queue/queue.ts';
import { defaultInstruments, planInput } from './plan-input.ts';
import { planRun } from './plan-run.ts';
import { planTargets } from './plan-windows.ts';
import type { PlanInput } from './planned-window.ts';

/** How much a run would request from the source. */
interface Extent {
  /** All windows, including skipped ones. */
  readonly windows: number;
  /** Calls to make. */
  readonly requests: number;
  readonly skipped: number;
  /** Windows with days for which the source probably has no data any more (EOD_HISTORY_DAYS); they are requested. */
  readonly outOfReach: number;
  /** True if some instruments are not known yet. Then EOD_INSTRUMENT_LIMIT instruments are assumed. */
  readonly isEstimated: boolean;
  /** How many calls are left when the next night begins, and are made later; 0 for other runs. */
  readonly leftOver: number;
  readonly isDoneInTime: boolean;
}

/** What a run would request for one operation and exchange. */
interface OperationForecast extends Pair, Extent {
  /**
   * When its last call is made, ISO 8601; null if there is none, or it is never made. Of what is left when the next
   * night begins, at the earliest: that night requests prices and lists first.
   */
  readonly finishAt: string | null;
}

export interface Forecast extends DayRange, Extent {
  readonly kind: RunKind;
  /** Number of clock hours in which calls are made; null if this kind of run may make no calls. */
  readonly hours: number | null;
  /** Expected end, ISO 8601; null if this kind of run may make no calls (EOD_NIGHTLY_RESERVE is 100 %). */
  readonly finishAt: string | null;
  /** First day for which the source probably has data (EOD_HISTORY_DAYS). */
  readonly reachesBackTo: Day;
  /** Calls that a run of this kind may make in a clock hour, and how many of them are left in this one. */
  readonly callsPerHour: number;
  readonly leftThisHour: number;
  /** When the next night begins, at most a day from now, ISO 8601; null if this is no night. */
  readonly nextNightAt: string | null;
  /** In the order in which they are requested; those that request nothing come last. */
  readonly operations: readonly OperationForecast[];
}

const NOTHING = { windows: 0, requests: 0, skipped: 0, outOfReach: 0 };

/** Assumed duration of a call before any was measured, in seconds. */
const DEFAULT_SECONDS_PER_CALL = 0.5;

/**
 * Plans a request without starting it. `requests` is exact if no call fails and the instruments of deferred targets do
 * not change until they are planned.
 */
export async function forecastRun(context: Context, request: RunRequest): Promise<Forecast> {
  const { config, clock } = context;
  const plan = await planRun(context, request);
  const reach = addDays(today(clock, config.EOD_TIMEZONE), -config.EOD_HISTORY_DAYS);
  const later = await Promise.all(
    plan.deferred.map((target) => inputWithKnownInstruments(context, request, target)),
  );
  const tallies = new Map<string, Tally>();
  const groups = new Map<string, Group>();
  const night = [...request.targets]
    .map(({ to }) => to)
    .sort()
    .at(-1) as Day;
  const classes = classesOf(context, night);
  for (const windows of [plan.windows, planTargets(later)]) {
    for (const window of windows) {
      const key = pairName(window);
      const tally = tallies.get(key) ?? { ...NOTHING };
      tallies.set(key, tally);
      addWindow(tally, window, reach);
      if (window.state !== 'pending') continue;
      // Backfills are requested in the order in which they are planned.
      const found = request.kind === 'nightly' ? classes(window) : 0;
      const group = groups.get(`${key} ${found}`) ?? { pair: key, class: found, calls: 0 };
      groups.set(`${key} ${found}`, group);
      group.calls += 1;
    }
  }
  // Gaps of an operation may be several targets.
  const pairs = new Map(request.targets.map((target) => [pairName(target), target]));
  const deferred = new Set(plan.deferred.map(pairName));
  const pace = await readPace(context, request.kind);
  const nextNight = request.kind === 'nightly' ? nextNightStart(context, night) : null;
  const finishes = finishesOf([...groups.values()], pace, nextNight, config.EOD_TIMEZONE);
  // In the order in which their first calls are made.
  const turns = new Map<string, number>();
  for (const group of groups.values())
    turns.set(group.pair, Math.min(group.class, turns.get(group.pair) ?? group.class));
  const turnOf = ([key]: readonly [string, Target]) => turns.get(key) ?? Number.MAX_SAFE_INTEGER;
  const found = [...pairs]
    .sort((a, b) => turnOf(a) - turnOf(b))
    .map(
      ([key, { operation, exchange }]): OperationForecast => ({
        operation,
        exchange,
        ...(tallies.get(key) ?? NOTHING),
        isEstimated: deferred.has(key),
        ...(finishes.get(key) ?? NO_CALLS),
      }),
    );
  const sum = (name: 'requests' | 'windows' | 'skipped' | 'outOfReach' | 'leftOver') =>
    found.reduce((total, one) => total + one[name], 0);
  const days = request.targets.flatMap((target) => [target.from, target.to]).sort();
  return {
    kind: request.kind,
    from: days[0] as Day,
    to: days.at(-1) as Day,
    requests: sum('requests'),
    ...finishOf(sum('requests'), pace),
    callsPerHour: pace.perHour,
    leftThisHour: pace.leftThisHour,
    windows: sum('windows'),
    skipped: sum('skipped'),
    outOfReach: sum('outOfReach'),
    reachesBackTo: reach,
    isEstimated: found.some((one) => one.isEstimated),
    nextNightAt: isoOf(nextNight),
    leftOver: sum('leftOver'),
    isDoneInTime: sum('leftOver') === 0,
    operations: found,
  };
}

type Finish = Pick<OperationForecast, 'finishAt' | 'leftOver' | 'isDoneInTime'>;

const NO_CALLS: Finish = { finishAt: null, leftOver: 0, isDoneInTime: true };

type Group = { -readonly [Name in keyof CallGroup]: CallGroup[Name] };

/** The class of a planned window in the order of a night. */
function classesOf({ calendar, config }: Context, night: Day): (window: PlannedWindow) => number {
  const sessions = new Map<string, readonly Day[]>();
  return ({ operation: name, exchange, to }) => {
    const last =
      sessions.get(exchange) ?? calendar.lastSessions(exchange, night, 1 + config.EOD_LOOKBACK_SESSIONS);
    sessions.set(exchange, last);
    const operation = operationNamed(name);
    return classOf({ value: worthOf(operation), recency: recencyOf(operation, to, last) });
  };
}

/** When the calls of each operation and exchange are made, in the order of the night. */
function finishesOf(
  groups: readonly CallGroup[],
  pace: Awaited<ReturnType<typeof readPace>>,
  nextNight: number | null,
  zone: string,
): ReadonlyMap<string, Finish> {
  const placed = spreadCalls(groups, pace, nextNight ?? Number.POSITIVE_INFINITY);
  // The next night requests as much as this one before it comes to what is left.
  const first = groups.reduce((sum, one) => sum + (isDetailClass(one.class) ? 0 : one.calls), 0);
  const later = {
    ...pace,
    now: nextNight ?? pace.now,
    hour: hourStart(nextNight ?? pace.now, zone),
    perHour: pace.leftoverPerHour,
    leftThisHour: pace.leftoverPerHour,
  };
  return new Map(
    [...placed].map(([pair, { finishAt, leftOver, leftBefore }]) => {
      if (nextNight === null) return [pair, { ...NO_CALLS, finishAt: isoOf(finishAt) }];
      const last = leftOver === 0 ? finishAt : (expectedFinish(first + leftBefore, later)?.finishAt ?? null);
      return [pair, { finishAt: isoOf(last), leftOver, isDoneInTime: leftOver === 0 }];
    }),
  );
}

type Tally = {
  -readonly [Name in 'windows' | 'requests' | 'skipped' | 'outOfReach']: OperationForecast[Name];
};

function addWindow(tally: Tally, { state, from, operation }: PlannedWindow, reach: Day): void {
  tally.windows += 1;
  if (state !== 'pending') {
    tally.skipped += 1;
    return;
  }
  tally.requests += 1;
  // It is not known for how long the source keeps figures of quarters.
  if (from < reach && !isQuarterly(operationNamed(operation))) tally.outOfReach += 1;
}

/** The plan input of a deferred target, with the instruments known now. */
async function inputWithKnownInstruments(
  context: Context,
  request: RunRequest,
  target: Target,
): Promise<PlanInput> {
  const { config } = context;
  const known = await defaultInstruments(context, target.exchange);
  const missing = Math.max(0, config.EOD_INSTRUMENT_LIMIT - known.length);
  // Placeholders for instruments that the bhav copies of the run will list. No symbol starts with a space.
  const placeholders = Array.from({ length: missing }, (_, position) => ` ${position}`);
  return planInput(context, { ...request, instruments: [...known, ...placeholders] }, target);
}

/** When a run will have made this many calls, from the recent duration of calls and the hourly budget. */
export async function forecastFinish(context: Context, kind: RunKind, requests: number) {
  const pace = await readPace(context, kind);
  return {
    requests,
    ...finishOf(requests, pace),
    callsPerHour: pace.perHour,
    leftThisHour: pace.leftThisHour,
  };
}

function finishOf(requests: number, pace: Pace): Pick<Forecast, 'hours' | 'finishAt'> {
  const finish = expectedFinish(requests, pace);
  return { hours: finish?.hours ?? null, finishAt: isoOf(finish?.finishAt ?? null) };
}

const isoOf = (moment: number | null) => (moment === null ? null : new Date(moment).toISOString());

async function readPace(
  { config, clock, db }: Context,
  kind: RunKind,
): Promise<Pace & { readonly leftoverPerHour: number }> {
  const callLimit = callLimitOf(config, clock);
  const calls = callsOf(queueOf(kind), callLimit, await readHour(db.drizzle, callLimit));
  const seconds = (await medianWindowSeconds(db.drizzle)) ?? DEFAULT_SECONDS_PER_CALL;
  return {
    leftThisHour: calls.left,
    perHour: calls.perHour,
    now: callLimit.now,
    hour: callLimit.hour,
    secondsPerCall: seconds / config.EOD_CONCURRENCY,
    leftoverPerHour: callLimit.leftoverLimit,
  };
}

/**
 * When the next night after that of a day begins, but at most a day from now: a run that is started before its evening
 * has no more time than one that is started then. Milliseconds since the epoch.
 */
function nextNightStart({ config, clock }: Context, date: Day): number {
  const zone = config.EOD_TIMEZONE;
  const first = requestedOperations(config)
    .map((operation) => requestMinutes(operation, config)[0])
    .reduce((least, minutes) => Math.min(least, minutes));
  const now = today(clock, zone);
  const starts = [addDays(date, 1), now, addDays(now, 1)].map((day) => epochOf(day, first * 60, zone) * 1000);
  return Math.min(starts.find((start) => start > clock.now()) as number, clock.now() + DAY_MS);
}
