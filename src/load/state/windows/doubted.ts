import {
  and,
  type Column,
  count,
  desc,
  eq,
  gte,
  inArray,
  isNotNull,
  isNull,
  lte,
  ne,
  notExists,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { DayRange } from '../../../core/days.ts';
import { rejects, withdrawals } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';

/** The position of the last response of a window. */
const positionOf = (windowId: Column) =>
  sql`(select max(a.position) from ${responses} a where a.window_id = ${windowId})`;

/**
 * Windows that are suspicious, each with its reasons: one of its records was not requested and is
 * still an open reject, its withdrawal was held back and nobody has decided, or it was doubted for another reason and
 * no later good response to all of its entries has come. One with rejected records does not settle that, because its
 * rows were not compared with the stored ones.
 */
function doubtedWindows(db: NodePgDatabase) {
  const later = alias(windows, 'later');
  const itsRun = alias(runs, 'its_run');
  const better = db
    .select({ id: later.id })
    .from(later)
    .innerJoin(itsRun, and(eq(itsRun.id, later.run_id), ne(itsRun.kind, 'replay')))
    .where(
      and(
        sql`${positionOf(later.id)} > ${positionOf(windows.id)}`,
        eq(later.operation, windows.operation),
        eq(later.exchange, windows.exchange),
        lte(later.from_date, windows.from_date),
        gte(later.to_date, windows.to_date),
        eq(later.instruments, windows.instruments),
        eq(later.variant, windows.variant),
        inArray(later.state, ['loaded', 'empty']),
        isNull(later.suspicious),
        eq(later.rejected, 0),
        eq(later.is_filtered, false),
      ),
    );
  return sql`
    select id, string_agg(reason, '; ') as reason from (
      select window_id as id, case count(*) when 1 then 'a record is' else count(*) || ' records are' end
          || ' of a day, quarter or exchange that was not requested' as reason
        from ${rejects} where is_stray and resolved_at is null group by window_id
      union all
      -- A replay folds again what other windows have loaded: the position says whose withdrawal it is.
      select coalesce(nullif(a.window_id, 0), w.window_id), w.reason
        from ${withdrawals} w left join ${responses} a on a.position = w.position where w.state = 'refused'
      union all
      select ${windows.id}, ${windows.unsettled} from ${windows} where ${and(isNotNull(windows.unsettled), notExists(better))}
    ) reasons group by id`;
}

const doubted = { id: sql`doubted.id`, reason: sql<string>`doubted.reason` };

/** How many windows with doubted responses each operation and exchange has. */
export function countDoubtedWindows(db: NodePgDatabase) {
  const { operation, exchange } = windows;
  return db
    .select({ operation, exchange, windows: count() })
    .from(sql`(${doubtedWindows(db)}) doubted`)
    .innerJoin(windows, eq(windows.id, doubted.id))
    .groupBy(operation, exchange);
}

/** Windows with doubted responses that touch these days, the newest first. */
export function listDoubtedWindows(db: NodePgDatabase, { from, to }: DayRange, limit: number) {
  return db
    .select({
      windowId: windows.id,
      runId: windows.run_id,
      operation: windows.operation,
      exchange: windows.exchange,
      from: windows.from_date,
      to: windows.to_date,
      reason: doubted.reason,
    })
    .from(sql`(${doubtedWindows(db)}) doubted`)
    .innerJoin(windows, eq(windows.id, doubted.id))
    .where(and(lte(windows.from_date, to), gte(windows.to_date, from)))
    .orderBy(desc(windows.id))
    .limit(limit);
}
