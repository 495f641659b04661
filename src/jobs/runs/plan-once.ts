import type { PlannedWindow } from '../../state/windows/plan.ts';
import {
  buildWindow,
  COVERED,
  coveredFor,
  ownOptions,
  type PlanInput,
  REQUESTED,
  sharedFields,
} from './planned-window.ts';

/** One window, of the day of the call, unless it is covered. */
export function planOnce(input: PlanInput): PlannedWindow[] {
  const day = input.today;
  const isKnown = coveredFor(input, day, '') === 'all';
  const outcome = isKnown ? ({ state: 'skipped', reason: `${COVERED} today` } as const) : REQUESTED;
  const range = { from: day, to: day, params: ownOptions(input), variant: '', ...outcome };
  return [buildWindow(sharedFields(input), range, [])];
}
