import { type Day, type DayRange, eachDay } from '../../core/days.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import { spanLimits, spanOf } from '../../operations/spans.ts';
import { type PlanInput, skipAll } from './planned-window.ts';

/** The days of the range that a named span reaches from today. */
export function reachableDays(input: PlanInput): PlanInput {
  const { operation, today } = input;
  const reaches = (day: Day) => spanOf(operation, { from: day, to: day }, today) !== undefined;
  const days = eachDay(input.from, input.to).filter(reaches);
  return {
    ...input,
    from: days[0] ?? input.from,
    to: days.at(-1) ?? input.to,
    sessions: input.sessions.filter(reaches),
  };
}

/** One window for the days that no span reaches: nothing is asked. */
export function outOfReach(asked: PlanInput, { sessions }: PlanInput): PlannedWindow {
  const left = asked.sessions.filter((day) => !sessions.includes(day));
  const { name } = asked.operation;
  const range = { from: left[0] ?? asked.from, to: left.at(-1) ?? asked.to };
  return skipAll(
    { ...asked, ...range },
    `the source answers ${name} only for ${spanLimits(asked.operation)}`,
  );
}

/** Can one request ask for the whole range? */
export const isOneSpan = ({ operation, today }: PlanInput, range: DayRange) =>
  operation.request.dates !== 'spans' || spanOf(operation, range, today) !== undefined;
