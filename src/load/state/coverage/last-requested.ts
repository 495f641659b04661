import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { addDays, type Day } from '../../../core/days.ts';
import type { Pair } from '../../../core/exchanges.ts';
import { coverage } from '../schema/load-results.ts';

/**
 * Requests longer ago than this are taken as never made; a quarter and its responses are within it.
 */
const REACH_DAYS = 100;

/**
 * When an operation last requested each instrument of an exchange, by the symbol; the empty one stands for the whole
 * exchange. What was requested too long ago, or never, is not in it.
 * Only entries of the last months are read, because coverage grows every night.
 */
export async function readLastRequested(
  db: NodePgDatabase,
  { operation, exchange, date, timeZone }: Pair & { readonly date: Day; readonly timeZone: string },
): Promise<ReadonlyMap<string, Day>> {
  const found = await db.execute<{ instrument: string; requested: Day }>(sql`
    select instrument, to_char(max(checked_at) at time zone ${timeZone}, 'YYYY-MM-DD') as requested
      from ${coverage}
     where operation = ${operation} and exchange = ${exchange} and isfinite(checked_at)
       and day >= ${addDays(date, -REACH_DAYS)}::date
     group by instrument`);
  return new Map(found.rows.map(({ instrument, requested }) => [instrument, requested]));
}
