import type { Day } from '../core/days.ts';

/** The page of a data set's calendar, or of one of its days. */
export function coverageOf(
  { operation, exchange }: { readonly operation: string; readonly exchange: string },
  day?: Day,
): string {
  const parts = [operation, exchange, ...(day === undefined ? [] : [day])];
  return `/coverage/${parts.map(encodeURIComponent).join('/')}`;
}
