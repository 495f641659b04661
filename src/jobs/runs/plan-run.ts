import type { Calendar } from '../../calendar/calendar.ts';
import type { Pair } from '../../core/exchanges.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { RunRequest, Target } from '../../state/request.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import type { Context } from '../context.ts';
import { syncTradingDays, unknownYears, yearRanges } from '../responses/sync-sessions.ts';
import { listedBy, planUnlessWaiting } from './covered.ts';
import { planInput } from './plan-input.ts';
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
  await syncTradingDays(context);
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
  const listOf = listOfTargets(context, request);
  const inputs = new Map<Target, PlanInput>();
  const deferred = await planUnlessWaiting(targets, listOf, async (target) => {
    const input = await planInput(context, request, target);
    inputs.set(target, input);
    return () => hasPending(input);
  });
  return { windows: planTargets(targets.flatMap((target) => inputs.get(target) ?? [])), deferred };
}

/** The operation and exchange that shows what a target of a run requests; null if none does. */
export function listOfTargets(
  { config }: Context,
  { instruments }: RunRequest,
): (target: Target) => Pair | null {
  const named = instruments.length > 0 || config.EOD_INSTRUMENTS !== undefined;
  return ({ operation, exchange }) => {
    const list = listedBy(operationNamed(operation), named);
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
