import type { Day } from '../../core/days.ts';
import { completenessSql, type Pair } from '../../load/state/completeness-sql.ts';
import type { Context } from '../context.ts';

/** Why a session is not there; etl.completeness says what each means. */
export type GapReason =
  | 'never_asked'
  | 'failed'
  | 'blocked'
  | 'beyond_history'
  | 'not_published'
  | 'empty'
  | 'partial';

/** One session of one operation and exchange, as the view etl.completeness shows it. */
export interface SessionState extends Pair {
  readonly day: Day;
  /** `pending`: it is too early for it. */
  readonly state: 'complete' | 'missing' | 'pending';
  readonly reason: GapReason | null;
  readonly detail: string | null;
  readonly records: number;
}

/** Which sessions to judge. */
export interface CompletenessScope {
  readonly expected: readonly Pair[];
  /** Also what else was ever loaded. */
  readonly others: boolean;
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
}

/** The query for a scope, as of the context's clock and settings. */
function completenessQuery(
  { config, clock }: Pick<Context, 'config' | 'clock'>,
  scope: CompletenessScope,
): string {
  return completenessSql({
    ...scope,
    now: new Date(clock.now()),
    timeZone: config.EOD_TIMEZONE,
    publishedAt: config.EOD_PUBLISHED_AT,
    historyDays: config.EOD_HISTORY_DAYS,
  });
}

/** Every session of a scope, by operation, exchange and day. */
export async function readCompleteness(
  context: Pick<Context, 'config' | 'clock' | 'db'>,
  scope: CompletenessScope,
): Promise<SessionState[]> {
  const found = await context.db.pool.query<SessionState>(
    `select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, state, reason, detail, records::float8 as records
       from (${completenessQuery(context, scope)}) c order by operation, exchange, c.day`,
  );
  return found.rows;
}

/** Freshness and size of what is loaded of an operation and exchange. */
export interface Freshness extends Pair {
  /** Last session that is complete, or null. */
  readonly lastComplete: Day | null;
  /** Last session whose data should be there by now. */
  readonly lastDue: Day | null;
  /** That session is not there. */
  readonly late: boolean;
  /** Of the last thirty sessions that should be there, how many are not. */
  readonly missingSessions: number;
  /** Records of the last complete session. */
  readonly lastRecords: number | null;
  /** Median over the twenty complete sessions before it; null where there is none. */
  readonly medianRecords: number | null;
}

/** Sessions looked at for what is missing, and for how large a session usually is. */
const LOOKED_AT = 30;
const USUAL_OVER = 20;

/** How recent and how full the data of each operation and exchange of a scope is. */
export async function readFreshness(
  context: Pick<Context, 'config' | 'clock' | 'db'>,
  scope: CompletenessScope,
): Promise<Freshness[]> {
  const found = await context.db.pool.query<Freshness>(
    `with session as (${completenessQuery(context, scope)}),
     placed as (
       select *, row_number() over (partition by operation, exchange, state = 'pending' order by day desc) as place,
         row_number() over (partition by operation, exchange, state = 'complete' order by day desc) as complete_place
         from session)
     select operation, exchange,
       to_char(max(day) filter (where state = 'complete'), 'YYYY-MM-DD') as "lastComplete",
       to_char(max(day) filter (where state <> 'pending'), 'YYYY-MM-DD') as "lastDue",
       coalesce(bool_or(state = 'missing') filter (where place = 1), false) as late,
       count(*) filter (where state = 'missing' and place <= ${LOOKED_AT})::int as "missingSessions",
       max(records) filter (where state = 'complete' and complete_place = 1)::float8 as "lastRecords",
       percentile_cont(0.5) within group (order by records) filter (
         where state = 'complete' and complete_place between 2 and ${USUAL_OVER + 1}) as "medianRecords"
     from placed group by operation, exchange`,
  );
  return found.rows;
}

/** Years of a range the calendar has no data for: Monday to Friday is assumed there. */
export function unknownYears(
  { calendar }: Pick<Context, 'calendar'>,
  exchanges: readonly string[],
  { from, to }: { readonly from: Day; readonly to: Day },
): string[] {
  const found: string[] = [];
  for (let year = Number(from.slice(0, 4)); year <= Number(to.slice(0, 4)); year += 1) {
    for (const exchange of exchanges) {
      if (!calendar.knows(exchange, year)) found.push(`${exchange} ${year}`);
    }
  }
  return found;
}
