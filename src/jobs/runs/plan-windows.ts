import type { Operation } from '../../declaration/operation.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import { planTradingDays } from './plan-days.ts';
import { chosenRequests, planInstruments } from './plan-instruments.ts';
import { planOnce, planRanges } from './plan-ranges.ts';
import { nameRequest, type PlanInput, type Planner } from './planned-window.ts';

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
          const mayRepeat = repeated.size > 0 && repeated.has(nameRequest(window));
          const planned = mayRepeat ? skipRepeated(requested, window) : window;
          if (planned !== null) yield planned;
        }
      }
    },
  };
}

/** The requests that more than one target may make; only their planned windows have to be remembered. */
function repeatedRequests(inputs: readonly PlanInput[]): ReadonlySet<string> {
  const once = new Set<string>();
  const repeated = new Set<string>();
  for (const input of inputs) {
    const { exchange, operation } = input;
    const requests = [{ variant: '', from: '', to: '' }, ...chosenRequests(input)];
    for (const request of new Set(
      requests.map((chosen) => nameRequest({ ...chosen, exchange, operation: operation.name })),
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

const PLANNERS: Readonly<Record<Operation['windows']['per'], Planner>> = {
  once: planOnce,
  instrument: planInstruments,
  session: planTradingDays,
  range: planRanges,
};

/**
 * Divides a range into windows, with the fewest calls that get what is not loaded yet (pure).
 *
 * Covered trading days are left out, unless they lie between two missing ones within the range of one window: then one
 * call for all of them is better than two.
 */
export const planWindows = (
  input: PlanInput,
  repeated: ReadonlySet<string> = new Set(),
): Iterable<PlannedWindow> => PLANNERS[input.operation.windows.per](input, repeated);
