import { type Day, type DayRange, daysBetween } from '../core/days.ts';
import { largest } from '../core/iterables.ts';
import type { DataSet, NamedSpan } from './operation.ts';

/** The shortest named span that contains these days, as of a day; undefined if none does. */
export function spanOf(
  { request }: Pick<DataSet, 'request'>,
  { from, to }: DayRange,
  asOf: Day,
): NamedSpan | undefined {
  const [first, last] = [daysBetween(asOf, from), daysBetween(asOf, to)];
  return (request.spans ?? [])
    .filter((span) => span.from <= first && last <= span.to)
    .sort((a, b) => a.to - a.from - (b.to - b.from))[0];
}

/** How many days to come the named spans reach; 0 if none does. */
export function daysAhead({ request }: Pick<DataSet, 'request'>): number {
  return largest(
    (request.spans ?? []).map(({ to }) => to),
    0,
  );
}

/** The days that an operation with named spans can be requested, in words. */
export function spanLimits({ request }: Pick<DataSet, 'request'>): string {
  const spans = request.spans ?? [];
  const back = largest(
    spans.map(({ from }) => -from),
    0,
  );
  const ahead = daysAhead({ request });
  const next = `the next ${ahead} days`;
  if (back === 0 && ahead > 0) return next;
  return `the last ${back} days${ahead > 0 ? ` and ${next}` : ''}`;
}
