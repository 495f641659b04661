import type { Day, DayRange } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { readArrivals, readSessionRecords } from '../../load/state/coverage/completeness.ts';
import { expectedVariants, isQuarterly } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';

/** Data that is loaded later than this does not count as late: it was loaded for a past range. */
export const AWAITED_HOURS = 48;

/** How late the data of a session was loaded. */
interface Arrival {
  readonly day: Day;
  /** Hours after it was due; 0 if it was not late. */
  readonly hours: number;
}

/** How late the sessions of a data set were loaded. */
export interface Lateness extends Pair {
  /** Sessions that were loaded within AWAITED_HOURS. */
  readonly arrivals: readonly Arrival[];
  /** Number of sessions that were loaded after that. */
  readonly afterwards: number;
  /** Median and maximum of the hours; null if there are no arrivals. */
  readonly median: number | null;
  readonly worst: number | null;
}

/** The data sets with data for each session; for the others there is no time at which data is due. */
export function withSessions(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(({ operation }) => {
    const declared = operationNamed(operation);
    return expectedVariants(declared) !== null && !isQuarterly(declared);
  });
}

/** Reads how late the sessions of a range were loaded, for each of these data sets. */
export async function readLateness(
  context: Context,
  pairs: readonly Pair[],
  range: DayRange,
): Promise<Lateness[]> {
  const sessions = await readArrivals(context, pairs, range);
  return pairs.map((pair) => {
    const all = sessions.filter((one) => pairName(one) === pairName(pair));
    const arrivals = all.filter(({ hours }) => hours <= AWAITED_HOURS);
    const sorted = arrivals.map(({ hours }) => hours).sort((a, b) => a - b);
    return {
      ...pair,
      arrivals,
      afterwards: all.length - arrivals.length,
      median: sorted[Math.floor((sorted.length - 1) / 2)] ?? null,
      worst: sorted.at(-1) ?? null,
    };
  });
}

/** The number of records of sessions of a data set. */
export interface RowCounts extends Pair {
  readonly sessions: readonly { readonly day: Day; readonly records: number }[];
}

/** Reads the number of records of each complete session in a range, for each of these data sets. */
export async function readRowCounts(
  context: Context,
  pairs: readonly Pair[],
  { from, to }: DayRange,
): Promise<RowCounts[]> {
  const scope = { expected: pairs, others: false, areNamed: true, from, to };
  const complete = (await readSessionRecords(context, scope)).filter(({ state }) => state === 'complete');
  return pairs.map((pair) => ({
    ...pair,
    sessions: complete
      .filter((one) => pairName(one) === pairName(pair))
      .map(({ day, records }) => ({ day, records })),
  }));
}
