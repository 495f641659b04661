import { loadedSessionsSql } from '../../state/coverage/coverage.ts';
import type { Check } from './quality-check.ts';

/** How many sessions a day's number of records is compared with, and the fewest that are enough. */
const SESSIONS = 20;
const AT_LEAST = 5;
/** Sessions more than this many days older do not count, because markets grow. */
const DAYS = 60;
/** How far from their median it may be, as a fraction. */
const SHARE = '0.2';

/** Data sets with about the same number of records every session. */
const STEADY = ['GetBhavCopyCM', 'GetTop5GainersLosers', 'GetTotalTradeHighlights'];

const rowCount = (operation: string): Check => ({
  name:
    operation === 'GetBhavCopyCM' ? 'row_count' : `row_count_${operation.slice('Get'.length).toLowerCase()}`,
  severity: 'warning',
  operation,
  rule: `${operation} brings about as many records as the ${SESSIONS} sessions before it (their median, ${Number(SHARE) * 100} % more or less).`,
  dated: true,
  sql: `
    select c.exchange, c.day as date, '' as instrument,
           format('about %s (median of %s sessions)', before.median, before.sessions) as expected,
           c.records::text as found
      from (${loadedSessionsSql(operation)}) as c
      cross join lateral (
        select percentile_cont(0.5) within group (order by records) as median, count(*) as sessions
          from (
            select records from (${loadedSessionsSql(operation)}) as e
             where e.exchange = c.exchange and e.day < c.day and e.day >= c.day - ${DAYS}
             order by e.day desc limit ${SESSIONS}) as earlier) as before
     where c.day between $1 and $2
       and before.sessions >= ${AT_LEAST} and abs(c.records - before.median) > before.median * ${SHARE}`,
});

export const rowCountChecks: readonly Check[] = STEADY.map(rowCount);
