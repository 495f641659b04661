import { addDays, type Day, type DayRange, eachDay } from '../../core/days.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import { areCovered } from './covered.ts';
import {
  buildWindow,
  coveredFor,
  instrumentBatches,
  instrumentsDiffer,
  KNOWN,
  noTradingDay,
  ownOptions,
  type PlanInput,
  type PlannedRange,
  REQUESTED,
  sharedFields,
} from './planned-window.ts';

/** One window for each trading day that is needed. */
export const planTradingDays = (input: PlanInput): Iterable<PlannedWindow> => planDays(input, 1);

/** The fewest windows of at most `days` calendar days. */
export function* planDays(input: PlanInput, days: number): Generator<PlannedWindow> {
  if (input.tradingDays.length === 0) {
    yield noTradingDay(input);
    return;
  }
  const extents = new Map(input.tradingDays.map((day) => [day, coveredFor(input, day, '')]));
  const different = instrumentsDiffer(extents.values());
  const shared = sharedFields(input);
  let ranges: PlannedRange[] | undefined;
  let first = 0;
  for (const instruments of instrumentBatches(input.operation, input.instruments)) {
    const last = first + instruments.length;
    if (ranges === undefined || different) {
      ranges = splitDays(input, (day) => areCovered(extents.get(day), first, last), days);
    }
    for (const range of ranges) yield buildWindow(shared, range, instruments);
    first = last;
  }
}

/** The fewest ranges of at most `days` calendar days that contain every needed day. */
function fewestRanges(input: PlanInput, isNeeded: (day: Day) => boolean, days: number): DayRange[] {
  const policy = input.operation.windows;
  const neededDays =
    policy.per === 'range' && policy.everyDay
      ? withClosedDays(input, isNeeded)
      : input.tradingDays.filter(isNeeded);
  const ranges: { from: Day; to: Day; limit: Day }[] = [];
  for (const day of neededDays) {
    const last = ranges.at(-1);
    if (last !== undefined && day <= last.limit) last.to = day;
    else ranges.push({ from: day, to: day, limit: addDays(day, days - 1) });
  }
  return ranges.map(({ from, to }) => ({ from, to }));
}

/**
 * The needed trading days, and the closed days before and after them: some operations have records of days that are not
 * trading days, and these belong to the trading day next to them.
 */
function withClosedDays({ from, to, tradingDays }: PlanInput, isNeeded: (day: Day) => boolean): Day[] {
  const days: Day[] = [];
  let next = 0;
  let beforeNeeded = false;
  for (const day of eachDay(from, to)) {
    const tradingDay = tradingDays[next];
    const nextNeeded = tradingDay !== undefined && isNeeded(tradingDay);
    if (nextNeeded || (beforeNeeded && day !== tradingDay)) days.push(day);
    if (day !== tradingDay) continue;
    beforeNeeded = nextNeeded;
    next += 1;
  }
  return days;
}

/**
 * Ranges to request, which contain every day that is not covered, and skipped ranges of up to the same length with the
 * other trading days.
 */
function splitDays(input: PlanInput, isCovered: (day: Day) => boolean, days: number) {
  const requested = fewestRanges(input, (day) => !isCovered(day), days);
  const skipped: { from: Day; to: Day }[] = [];
  /** Index of the first requested range that does not end before the day. */
  let next = 0;
  /** Index of the requested range that follows the last skipped one. */
  let following = 0;
  for (const day of input.tradingDays) {
    while ((requested[next]?.to ?? day) < day) next += 1;
    const range = requested[next];
    if (range !== undefined && range.from <= day) continue;
    const last = skipped.at(-1);
    if (last !== undefined && next === following && day <= addDays(last.from, days - 1)) last.to = day;
    else skipped.push({ from: day, to: day });
    following = next;
  }
  const params = ownOptions(input);
  return [
    ...requested.map((range): PlannedRange => ({ ...range, params, variant: '', ...REQUESTED })),
    ...skipped.map((range): PlannedRange => ({ ...range, params, variant: '', ...KNOWN })),
  ];
}
