import { and, count, desc, eq, gte, lte, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../core/days.ts';
import { rejects, withdrawals } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { suspiciousWindows } from '../schema/waiting.ts';
import { windows } from '../schema/work.ts';

/**
 * Windows that are suspicious, each with its reasons: one of its records was not requested and is
 * still an open reject, its withdrawal is withheld, or it was suspicious for another reason and
 * no later good response to all of its entries has come.
 */
const SUSPICIOUS = sql`
    select id, string_agg(reason, '; ') as reason from (
      select window_id as id, case count(*) when 1 then 'a record is' else count(*) || ' records are' end
          || ' of a day, quarter or exchange that was not requested' as reason
        from ${rejects} where is_stray and resolved_at is null group by window_id
      union all
      -- A replay folds again what other windows have loaded: the position says whose withdrawal it is.
      select coalesce(nullif(a.window_id, 0), w.window_id), w.reason
        from ${withdrawals} w left join ${responses} a on a.position = w.position where w.state = 'withheld'
      union all
      select id, reason from ${suspiciousWindows}
    ) reasons group by id`;

const suspicious = { id: sql`suspicious.id`, reason: sql<string>`suspicious.reason` };

/** How many windows with suspicious responses each operation and exchange has. */
export function countSuspiciousWindows(db: NodePgDatabase) {
  const { operation, exchange } = windows;
  return db
    .select({ operation, exchange, windows: count() })
    .from(sql`(${SUSPICIOUS}) suspicious`)
    .innerJoin(windows, eq(windows.id, suspicious.id))
    .groupBy(operation, exchange);
}

/** Windows with suspicious responses that touch these days, the newest first. */
export function listSuspiciousWindows(db: NodePgDatabase, { from, to }: DayRange, limit: number) {
  return db
    .select({
      windowId: windows.id,
      runId: windows.run_id,
      operation: windows.operation,
      exchange: windows.exchange,
      from: windows.from_date,
      to: windows.to_date,
      reason: suspicious.reason,
    })
    .from(sql`(${SUSPICIOUS}) suspicious`)
    .innerJoin(windows, eq(windows.id, suspicious.id))
    .where(and(lte(windows.from_date, to), gte(windows.to_date, from)))
    .orderBy(desc(windows.id))
    .limit(limit);
}
