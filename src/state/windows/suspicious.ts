import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { windows } from '../schema/work.ts';

// Which windows are suspicious is said by `etl.suspicious_reasons` (migrations/repeatable/waiting.sql).

/** How many windows with suspicious responses each operation and exchange has. */
export async function countSuspiciousWindows(db: NodePgDatabase) {
  const { rows } = await db.execute<Pair & Record<string, unknown> & { windows: number }>(sql`
    select w.operation, w.exchange, count(*)::int as windows
      from etl.suspicious_reasons() s join ${windows} w on w.id = s.window_id
     group by w.operation, w.exchange`);
  return rows;
}

interface SuspiciousWindow extends Pair {
  readonly windowId: number;
  readonly runId: number;
  readonly from: Day;
  readonly to: Day;
  readonly reason: string;
}

/** Windows with suspicious responses that touch these days, the newest first. */
export async function listSuspiciousWindows(db: NodePgDatabase, { from, to }: DayRange, limit: number) {
  const { rows } = await db.execute<SuspiciousWindow & Record<string, unknown>>(sql`
    select w.id::int as "windowId", w.run_id::int as "runId", w.operation, w.exchange,
           w.from_date::text as "from", w.to_date::text as "to", s.reason
      from etl.suspicious_reasons() s join ${windows} w on w.id = s.window_id
     where w.from_date <= ${to}::date and w.to_date >= ${from}::date
     order by w.id desc limit ${limit}`);
  return rows;
}
