import { BHAV_COPY } from '../../declaration/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { RunRequest, Target } from '../../state/request.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import type { Context } from '../context.ts';
import { syncTradingDays } from '../responses/sync-sessions.ts';
import { planInput } from './plan-input.ts';
import { planTargets, planWindows } from './plan-windows.ts';
import type { PlanInput } from './planned-window.ts';

export interface RunPlan {
  /** Generated when they are iterated. */
  readonly windows: Iterable<PlannedWindow>;
  /** Targets that are planned when the bhav copies of this run are loaded, which list their instruments. */
  readonly deferred: readonly Target[];
}

/**
 * Plans every target of a request, less what is covered now. Targets that request data per instrument are deferred if
 * the same run is about to load the bhav copies that list the instruments.
 */
export async function planRun(context: Context, request: RunRequest): Promise<RunPlan> {
  await syncTradingDays(context);
  return planKnown(context, request, request.targets);
}

/**
 * Plans these targets of a run, but for those whose instruments are listed by bhav copies that others of them are about to
 * load.
 */
export async function planKnown(
  context: Context,
  request: RunRequest,
  targets: readonly Target[],
): Promise<RunPlan> {
  const inputs = new Map<Target, PlanInput>();
  const plan = async (target: Target) => {
    const input = await planInput(context, request, target);
    inputs.set(target, input);
    return input;
  };
  const areNamed = request.instruments.length > 0 || context.config.EOD_INSTRUMENTS !== undefined;
  const needsList = ({ operation }: Target) =>
    !areNamed && operationNamed(operation).windows.per === 'instrument';
  /** Exchanges whose bhav copies are about to be loaded. */
  const coming = new Set<string>();
  for (const target of targets.filter((target) => !needsList(target))) {
    const input = await plan(target);
    if (target.operation === BHAV_COPY && hasPending(input)) coming.add(target.exchange);
  }
  const deferred: Target[] = [];
  for (const target of targets.filter(needsList)) {
    if (coming.has(target.exchange)) deferred.push(target);
    else await plan(target);
  }
  return { windows: planTargets(targets.flatMap((target) => inputs.get(target) ?? [])), deferred };
}

function hasPending(input: PlanInput): boolean {
  for (const { state } of planWindows(input)) if (state === 'pending') return true;
  return false;
}
