import { sql } from 'drizzle-orm';
import { today } from '../../core/clock.ts';
import { addDays, type Day } from '../../core/days.ts';
import {
  type CompletenessContext,
  type CompletenessScope,
  completenessQuery,
  type GapReason,
  type Pair,
  scheduledPairs,
} from './completeness.ts';
import { listAskedPairs } from './day-facts.ts';
import { coverage } from './schema/work.ts';

/** How recent and how complete the data of an operation and exchange is. */
export interface Freshness extends Pair {
  /** Was it ever asked for or imported, with whatever result? */
  readonly wasAsked: boolean;
  /** The last complete session; null if there is none. */
  readonly lastComplete: Day | null;
  /** The last session whose data should be stored by now. */
  readonly lastDue: Day | null;
  /** Is that session missing? */
  readonly late: boolean;
  /** Why it is missing, and what the source or the failure said; null if it is not. */
  readonly reason: GapReason | null;
  readonly detail: string | null;
  /** How many of the last MISSING_OF sessions that should be stored are missing. */
  readonly missingSessions: number;
  /** Records of the last complete session. */
  readonly lastRecords: number | null;
  /** Median over the twenty complete sessions before it; null if there are none. */
  readonly medianRecords: number | null;
}

/** How many sessions are looked at for missing ones. */
export const MISSING_OF = 30;

/** The usual number of records is the median over this many complete sessions. */
const USUAL_OVER = 20;

/** So many days have MISSING_OF sessions, whatever the holidays. */
const RECENT_DAYS = 60;

/**
 * The freshness of each operation and exchange that is scheduled, was ever asked for or was imported, without order.
 * The status and the dashboard both say what this says. Only where the last days do not decide it is the whole history
 * read, for those alone, so that it is quick on years of history.
 */
export async function readFreshness(context: CompletenessContext): Promise<Freshness[]> {
  const expected = scheduledPairs(context.config);
  const asked = await listAskedPairs(context.db.drizzle);
  const since = addDays(today(context.clock, context.config.EOD_TIMEZONE), -RECENT_DAYS);
  const recent = await freshnessOf(context, { expected, others: false, from: since, since });
  const decided = recent.filter((one) => one.isDecided);
  const rest = expected.filter((pair) => !includes(decided, pair));
  const others = asked.filter((pair) => !includes(expected, pair));
  const whole = await freshnessOf(context, { expected: rest, others });
  const found = [...decided, ...whole];
  const unknown = [...expected, ...others].filter((pair) => !includes(found, pair));
  return [...found, ...unknown.map((pair) => ({ ...UNKNOWN, ...pair }))].map(({ isDecided: _, ...one }) => ({
    ...one,
    wasAsked: includes(asked, one),
  }));
}

/** Was nothing ever loaded, imported or answered in vain? */
export function isUnused(sets: readonly Pick<Freshness, 'wasAsked'>[]): boolean {
  return sets.every(({ wasAsked }) => !wasAsked);
}

const includes = (pairs: readonly Pair[], { operation, exchange }: Pair) =>
  pairs.some((one) => one.operation === operation && one.exchange === exchange);

interface Found extends Omit<Freshness, 'wasAsked'> {
  /** Would older sessions change nothing? */
  readonly isDecided: boolean;
}

/** The freshness of a data set of which nothing is expected and nothing was ever complete. */
const UNKNOWN: Omit<Found, keyof Pair> = {
  lastComplete: null,
  lastDue: null,
  late: false,
  reason: null,
  detail: null,
  missingSessions: 0,
  lastRecords: null,
  medianRecords: null,
  isDecided: true,
};

function freshnessOf(context: CompletenessContext, scope: CompletenessScope): Promise<Found[]> {
  const ranked = sql`(
    select *, row_number() over (partition by operation, exchange, state = 'pending' order by day desc) as rank,
      row_number() over (partition by operation, exchange, state = 'complete' order by day desc) as complete_rank,
      bool_or(state = 'complete') over (partition by operation, exchange order by day) as is_wanted
      from (${completenessQuery(context, scope)}) as session) as ranked`;
  return context.db.drizzle
    .select({
      operation: sql`operation`.mapWith(coverage.operation),
      exchange: sql`exchange`.mapWith(coverage.exchange),
      lastComplete: sql<Day | null>`to_char(max(day) filter (where state = 'complete'), 'YYYY-MM-DD')`,
      lastDue: sql<Day | null>`to_char(max(day) filter (where state <> 'pending'), 'YYYY-MM-DD')`,
      late: sql<boolean>`coalesce(bool_or(state = 'missing') filter (where rank = 1), false)`,
      reason: sql<GapReason | null>`max(reason) filter (where state = 'missing' and rank = 1)`,
      detail: sql<string | null>`max(detail) filter (where state = 'missing' and rank = 1)`,
      missingSessions: sql`count(*) filter (where state = 'missing' and rank <= ${MISSING_OF})`.mapWith(
        Number,
      ),
      lastRecords: sql<
        number | null
      >`max(records) filter (where state = 'complete' and complete_rank = 1)::float8`,
      medianRecords: sql<number | null>`percentile_cont(0.5) within group (order by records) filter (
        where state = 'complete' and complete_rank between 2 and ${USUAL_OVER + 1})`,
      // Sessions before the first complete one of all are not expected, so those before the first complete one of these
      // may or may not be.
      isDecided: sql<boolean>`count(*) filter (where state <> 'pending' and is_wanted) >= ${MISSING_OF}
        and count(*) filter (where state = 'complete') > ${USUAL_OVER}`,
    })
    .from(ranked)
    .groupBy(sql`operation, exchange`);
}
