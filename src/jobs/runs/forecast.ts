import { today } from '../../core/clock.ts';
import { addDays, type Day, type DayRange } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/pair.ts';
import { medianWindowSeconds } from '../../load/state/runs/outcomes.ts';
import type { RunKind, RunRequest, Target } from '../../load/state/runs/request.ts';
import { readHour } from '../../load/state/source/call-budget.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import { isQuarterly } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { queueOf } from '../worker/queue.ts';
import { callLimitOf, callsOf } from '../worker/quota.ts';
import { defaultInstruments, planInput, planRun } from './plan-run.ts';
import { planTargets } from './plan-windows.ts';
import type { PlanInput } from './planned-window.ts';

/** What a run would request from the source for one operation and exchange. */
export interface OperationForecast extends Pair {
  /** All windows, including skipped ones. */
  readonly windows: number;
  /** Calls to make. */
  readonly requests: number;
  readonly skipped: number;
  /** Windows with days for which the source probably has no data any more (EOD_HISTORY_DAYS); they are asked for. */
  readonly outOfReach: number;
  /** Are the instruments not known yet? Then EOD_INSTRUMENT_LIMIT instruments are assumed. */
  readonly isEstimated: boolean;
}

export interface Forecast extends DayRange {
  readonly kind: RunKind;
  readonly requests: number;
  /** Number of clock hours in which calls are made; null if this kind of run may make no calls. */
  readonly hours: number | null;
  /** Expected end, ISO 8601; null if this kind of run may make no calls (EOD_NIGHTLY_RESERVE is 100 %). */
  readonly finishAt: string | null;
  readonly windows: number;
  readonly skipped: number;
  readonly outOfReach: number;
  /** First day for which the source probably has data (EOD_HISTORY_DAYS). */
  readonly reachesBackTo: Day;
  /** Calls that a run of this kind may make in a clock hour, and how many of them are left in this one. */
  readonly callsPerHour: number;
  readonly leftThisHour: number;
  /** Are the instruments of some operation not known yet? */
  readonly isEstimated: boolean;
  readonly operations: readonly OperationForecast[];
}

const NOTHING = { windows: 0, requests: 0, skipped: 0, outOfReach: 0 };

/** Assumed duration of a call before any was measured, in seconds. */
const DEFAULT_SECONDS_PER_CALL = 0.5;
const HOUR_MS = 3_600_000;

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
  for (const windows of [plan.windows, planTargets(later)]) {
    for (const window of windows) {
      const key = pairName(window);
      const tally = tallies.get(key) ?? { ...NOTHING };
      tallies.set(key, tally);
      addWindow(tally, window, reach);
    }
  }
  // Gaps of an operation may be several targets.
  const pairs = new Map(request.targets.map((target) => [pairName(target), target]));
  const deferred = new Set(plan.deferred.map(pairName));
  const operations = [...pairs].map(
    ([key, { operation, exchange }]): OperationForecast => ({
      operation,
      exchange,
      ...(tallies.get(key) ?? NOTHING),
      isEstimated: deferred.has(key),
    }),
  );
  const sum = (name: 'requests' | 'windows' | 'skipped' | 'outOfReach') =>
    operations.reduce((total, one) => total + one[name], 0);
  const days = request.targets.flatMap((target) => [target.from, target.to]).sort();
  return {
    kind: request.kind,
    from: days[0] as Day,
    to: days.at(-1) as Day,
    ...(await forecastFinish(context, request.kind, sum('requests'))),
    windows: sum('windows'),
    skipped: sum('skipped'),
    outOfReach: sum('outOfReach'),
    reachesBackTo: reach,
    isEstimated: operations.some((one) => one.isEstimated),
    operations,
  };
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

/** The plan input of a deferred target, with the instruments or rows known now. */
async function inputWithKnownInstruments(
  context: Context,
  request: RunRequest,
  target: Target,
): Promise<PlanInput> {
  const { config } = context;
  if (operationNamed(target.operation).windows.per === 'row') return planInput(context, request, target);
  const known = await defaultInstruments(context, target.exchange);
  const missing = Math.max(0, config.EOD_INSTRUMENT_LIMIT - known.length);
  // Stand for instruments that the bhav copies of the run will tell. No symbol starts with a space.
  const placeholders = Array.from({ length: missing }, (_, place) => ` ${place}`);
  return planInput(context, { ...request, instruments: [...known, ...placeholders] }, target);
}

/** When a run will have made this many calls, from the recent duration of calls and the hourly budget. */
export async function forecastFinish({ config, clock, db }: Context, kind: RunKind, requests: number) {
  const callLimit = callLimitOf(config, clock);
  const calls = callsOf(queueOf(kind), callLimit, await readHour(db.drizzle, callLimit));
  const pace = (await medianWindowSeconds(db.drizzle)) ?? DEFAULT_SECONDS_PER_CALL;
  const finish = expectedFinish({
    requests,
    leftThisHour: calls.left,
    perHour: calls.perHour,
    now: callLimit.now,
    hour: callLimit.hour,
    secondsPerCall: pace / config.EOD_CONCURRENCY,
  });
  return { requests, ...finish, callsPerHour: calls.perHour, leftThisHour: calls.left };
}

interface Pace {
  readonly requests: number;
  readonly leftThisHour: number;
  readonly perHour: number;
  /** The current time and the start of the clock hour, milliseconds since the epoch. */
  readonly now: number;
  readonly hour: number;
  /** With EOD_CONCURRENCY calls at a time. */
  readonly secondsPerCall: number;
}

/** How many clock hours the calls take, and when the last one is made (pure). */
function expectedFinish(pace: Pace): Pick<Forecast, 'hours' | 'finishAt'> {
  const { requests, leftThisHour, perHour, now, hour, secondsPerCall } = pace;
  const later = Math.max(0, requests - leftThisHour);
  if (later === 0) {
    const end = now + requests * secondsPerCall * 1000;
    return { hours: requests === 0 ? 0 : 1, finishAt: new Date(end).toISOString() };
  }
  // All calls are reserved for nightly runs: a backfill would never end.
  if (perHour <= 0) return { hours: null, finishAt: null };
  const further = Math.ceil(later / perHour);
  const inLast = later - (further - 1) * perHour;
  const end = hour + further * HOUR_MS + Math.min(HOUR_MS, inLast * secondsPerCall * 1000);
  return { hours: further + (leftThisHour > 0 ? 1 : 0), finishAt: new Date(end).toISOString() };
}
