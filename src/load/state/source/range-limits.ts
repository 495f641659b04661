import { and, eq, gt, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { RANGE_REFUSED_LINE } from '../../../core/errors.ts';
import { coverage } from '../schema/load-results.ts';
import { historyLimits, rangeLimits } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import type { NewWindow } from '../windows/plan.ts';

/**
 * Stores what an answered window proves about the longest range that the source allows its operation and the key: at
 * least the length of the window. If it is the last piece of a window that was refused, and all pieces were answered,
 * then at most the length of the pieces. If a piece was refused for good, the window went too far back, which says
 * nothing about its length.
 */
export async function learnRangeLimit(
  db: NodePgDatabase,
  { keyHash, windowId }: { readonly keyHash: string; readonly windowId: number },
): Promise<void> {
  await db.execute(sql`
    update ${rangeLimits} l set days = w.to_date - w.from_date + 1, learned_at = clock_timestamp()
      from ${windows} w
     where w.id = ${windowId} and l.key_hash = ${keyHash} and l.operation = w.operation
       and l.days < w.to_date - w.from_date + 1`);
  await db.execute(sql`
    insert into ${rangeLimits} (key_hash, operation, days)
    select ${keyHash}, parent.operation, max(piece.to_date - piece.from_date + 1)
      from ${windows} w join ${windows} parent on parent.id = w.parent_id join ${windows} piece on piece.parent_id = parent.id
     where w.id = ${windowId} and parent.diagnostic ~* ${RANGE_REFUSED_LINE}
     group by parent.id, parent.operation having bool_and(piece.state in ('loaded', 'empty'))
    on conflict (key_hash, operation) do update set days = excluded.days, learned_at = clock_timestamp()`);
}

/** A limit is used for this long; then the full length is tried again, which costs a call if the limit still holds. */
const LIMIT_USED_FOR = sql`interval '7 days'`;

/** Limits learned for a key, by operation, in days. */
export async function readRangeLimits(
  db: NodePgDatabase,
  keyHash: string,
): Promise<ReadonlyMap<string, number>> {
  const found = await db
    .select()
    .from(rangeLimits)
    .where(
      and(
        eq(rangeLimits.key_hash, keyHash),
        gt(rangeLimits.learned_at, sql`clock_timestamp() - ${LIMIT_USED_FOR}`),
      ),
    );
  return new Map(found.map((row) => [row.operation, row.days]));
}

type Asked = Pick<NewWindow, 'operation' | 'exchange' | 'variant' | 'from' | 'to'>;

/** The condition that the source has answered a day after `day`. If not, it may have refused for another reason. */
const hasAnswered = (day: SQL) => sql`(h.answered_day > ${day} or exists (
    select from ${coverage} c where c.operation = h.operation and c.exchange = h.exchange and c.variant = h.variant
       and c.day > ${day} and c.state in ('loaded', 'empty')))`;

/**
 * Stores that the source has refused a range. It does not say whether the range is too long or goes too far back, but a
 * single day is never too long.
 *
 * @returns whether the source has answered, or this run will ask it for, a newer day.
 */
export async function noteRefusedRange(
  db: NodePgDatabase,
  keyHash: string,
  { runId, operation, exchange, variant, from, to }: Asked & { readonly runId: number },
  diagnostic: string,
): Promise<boolean> {
  const day = from === to ? to : null;
  const noted = await db.execute<{ newer: boolean }>(sql`
    insert into ${historyLimits} as h (key_hash, operation, exchange, variant, refused_day, diagnostic, refused_at)
    values (${keyHash}, ${operation}, ${exchange}, ${variant}, ${day}, ${diagnostic}, clock_timestamp())
    on conflict (key_hash, operation, exchange, variant) do update
       set refused_day = greatest(h.refused_day, excluded.refused_day), diagnostic = excluded.diagnostic,
           refused_at = excluded.refused_at
    returning ${hasAnswered(sql`${to}::date`)} or exists (
      select from ${windows} n where n.run_id = ${runId} and n.operation = h.operation and n.exchange = h.exchange
         and n.variant = h.variant and n.to_date > ${to} and n.state in ('pending', 'running')) as newer`);
  return noted.rows[0]?.newer === true;
}

/** Stores that the source has answered a range: no day of it is out of reach, whatever was refused before. */
export async function noteAnsweredRange(
  db: NodePgDatabase,
  keyHash: string,
  { operation, exchange, variant, from }: Asked,
): Promise<void> {
  await db.execute(sql`
    update ${historyLimits}
       set refused_day = case when refused_day < ${from} then refused_day end,
           answered_day = greatest(answered_day, ${from}::date)
     where key_hash = ${keyHash} and operation = ${operation} and exchange = ${exchange} and variant = ${variant}`);
}

/** SQL for what is known about how far back the source answers the window `w` with a key: a join, and its columns. */
export function historyOf(keyHash: string): { readonly join: SQL; readonly columns: SQL } {
  return {
    join: sql`left join ${historyLimits} h on h.key_hash = ${keyHash} and h.operation = w.operation
                and h.exchange = w.exchange and h.variant = w.variant`,
    columns: sql`h.key_hash is not null as was_refused, h.diagnostic as range_diagnostic,
             case when w.from_date <= h.refused_day and h.refused_at > clock_timestamp() - ${OUT_OF_REACH_FOR} and ${hasAnswered(sql`h.refused_day`)}
                  then h.refused_day end as out_of_reach`,
  };
}

/** A day is out of reach for this long; then it is asked for again, since a day given up by mistake may be lost. */
const OUT_OF_REACH_FOR = sql`interval '1 day'`;
