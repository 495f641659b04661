import { addDays } from '../../core/days.ts';
import { AHEAD, isDated, partsOf, partVariant } from '../../declaration/operation.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import { planDays } from './plan-days.ts';
import {
  buildWindow,
  COVERED,
  coveredFor,
  instrumentBatches,
  ownOptions,
  type PlanInput,
  REQUESTED,
  sharedFields,
} from './planned-window.ts';

/** One window, of the day of the call, unless it is covered. */
export const planOnce = (input: PlanInput): PlannedWindow[] => [
  planToday(input, { params: ownOptions(input), variant: '' }),
];

/** A window of the day of the call, skipped if it is covered. */
function planToday(input: PlanInput, request: Pick<PlannedWindow, 'params' | 'variant'>): PlannedWindow {
  const day = input.today;
  const isKnown = coveredFor(input, day, request.variant) === 'all';
  const outcome = isKnown ? ({ state: 'skipped', reason: `${COVERED} today` } as const) : REQUESTED;
  return buildWindow(sharedFields(input), { from: day, to: day, ...request, ...outcome }, []);
}

/** Windows of several days, those of its parts, and those of days to come. */
export function* planRanges(input: PlanInput): Generator<PlannedWindow> {
  const { windows } = input.operation;
  if (windows.per !== 'range') return;
  if (!isRequestedByDays(input)) {
    yield* planUndated(input);
    return;
  }
  const days = input.windowDays ?? windows.days;
  yield* planParts(input);
  yield* planDays(input, days);
  if (input.live) yield* planAhead(input, { days, ahead: windows.ahead ?? 0 });
}

/** True if its requests are sent with their days. Those with some filters are not. */
const isRequestedByDays = (input: PlanInput) =>
  isDated(input.operation, { params: ownOptions(input), instruments: input.instruments });

/** One window for each call's instruments, without dates; its response says nothing about any day. */
function planUndated(input: PlanInput): PlannedWindow[] {
  const { today: day } = input;
  const range = { from: day, to: day, params: ownOptions(input), variant: '', ...REQUESTED };
  return instrumentBatches(input.operation, input.instruments).map((instruments) => ({
    ...buildWindow(sharedFields(input), range, instruments),
    filtered: true,
  }));
}

/**
 * The days to come that a night requests, if records may be of such days. They are requested each night, in windows of
 * their own: a response says nothing about the coverage of trading days, and the source may refuse days to come.
 */
function* planAhead(
  input: PlanInput,
  { days, ahead }: { readonly days: number; readonly ahead: number },
): Generator<PlannedWindow> {
  const { operation, today, reach } = input;
  const end = addDays(today, ahead);
  const last = reach !== undefined && reach.to < end ? reach.to : end;
  const shared = { ...sharedFields(input), filtered: true };
  for (const instruments of instrumentBatches(operation, input.instruments)) {
    for (let from = addDays(today, 1); from <= last; from = addDays(from, days)) {
      const to = addDays(from, days - 1);
      const range = {
        from,
        to: to < last ? to : last,
        params: ownOptions(input),
        variant: AHEAD,
        ...REQUESTED,
      };
      yield buildWindow(shared, range, instruments);
    }
  }
}

/** One window for each part that is not covered today: those that the operation declares and those that are stored. */
function planParts(input: PlanInput): PlannedWindow[] {
  const parts = partsOf(input.operation);
  if (parts === undefined) return [];
  const { seenParts = [] } = input;
  const values = new Map([...seenParts, ...parts.values].map((value) => [value.toLowerCase(), value]));
  return [...values.values()].sort().map((value) => {
    const params = { ...ownOptions(input), [parts.param]: value };
    return planToday(input, { params, variant: partVariant(parts, value) });
  });
}
