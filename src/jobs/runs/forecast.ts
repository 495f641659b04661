import { today } from '../../core/clock.ts';
import { addDays, type Day, type DayRange, HOUR_MS } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { isQuarterly } from '../../declaration/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { RunKind, RunRequest, Target } from '../../state/request.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import type { Context } from '../context.ts';
import { furtherHours } from '../policy/quota.ts';
import { chooseQueue } from '../queue/queue.ts';
import { defaultInstruments, planInput } from './plan-input.ts';
import { planRun } from './plan-run.ts';
import { planTargets } from './plan-windows.ts';
import type { PlanInput } from './planned-window.ts';
import { callsLeft, quotaStatus } from './read-status.ts';

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
}

/** What a run would request for one operation and exchange. */
type OperationForecast = Pair & Extent;

export interface Forecast extends DayRange, Extent {
  readonly kind: RunKind;
  /** Number of clock hours in which calls are made; null if this kind of run may make no calls. */
  readonly hours: number | null;
  /** End of the last of them, ISO 8601; null if this kind of run may make no calls (EOD_NIGHTLY_RESERVE is 100 %). */
  readonly finishAt: string | null;
  /** First day for which the source probably has data (EOD_HISTORY_DAYS). */
  readonly reachesBackTo: Day;
  /** Calls that a run of this kind may make in a clock hour, and how many of them are left in this one. */
  readonly callsPerHour: number;
  readonly leftThisHour: number;
  /** In the order in which they are planned. */
  readonly operations: readonly OperationForecast[];
}

const NOTHING = { windows: 0, requests: 0, skipped: 0, outOfReach: 0 };

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
  const tallies = new Map<string, typeof NOTHING>();
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
  const forecasts = [...pairs].map(
    ([key, { operation, exchange }]): OperationForecast => ({
      operation,
      exchange,
      ...(tallies.get(key) ?? NOTHING),
      isEstimated: deferred.has(key),
    }),
  );
  const sum = (name: keyof typeof NOTHING) =>
    forecasts.reduce((total, forecast) => total + forecast[name], 0);
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
    isEstimated: forecasts.some((forecast) => forecast.isEstimated),
    operations: forecasts,
  };
}

function addWindow(tally: typeof NOTHING, { state, from, operation }: PlannedWindow, reach: Day): void {
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
  const placeholders = Array.from({ length: missing }, (_, at) => ` ${at}`);
  return planInput(context, { ...request, instruments: [...known, ...placeholders] }, target);
}

/** In how many clock hours a run makes this many calls, and when the last of these ends: in steps of an hour. */
export async function forecastFinish(context: Context, kind: RunKind, requests: number) {
  const quota = await quotaStatus(context);
  const calls = callsLeft(quota);
  const isNight = chooseQueue(kind) === 'nightly';
  const perHour = isNight ? quota.limit : quota.backfillLimit;
  const left = isNight ? calls.left : calls.forBackfills;
  const further = furtherHours(requests, { perHour, left });
  const isEndless = further === Number.POSITIVE_INFINITY;
  return {
    requests,
    hours: isEndless ? null : further + (Math.min(requests, left) > 0 ? 1 : 0),
    finishAt: isEndless ? null : new Date(Date.parse(quota.hour) + (1 + further) * HOUR_MS).toISOString(),
    callsPerHour: perHour,
    leftThisHour: left,
  };
}
