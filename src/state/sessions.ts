import { createHash } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../core/days.ts';
import { expectations, sessions } from './schema/knowledge.ts';
import { coverage } from './schema/load-results.ts';

/** A day on which an exchange was open. */
export type TradingDayRow = Readonly<Pick<typeof sessions.$inferSelect, 'exchange' | 'day' | 'kind'>>;

/** A digest of stored trading days, which is much faster than reading the rows of ten years. */
export async function digestStoredTradingDays(db: NodePgDatabase, { from, to }: DayRange): Promise<string> {
  const { rows } = await db.execute<{ digest: string }>(sql`
    select md5(coalesce(string_agg(line, ',' order by line collate "C"), '')) as digest
      from ${sessions} s cross join lateral concat_ws(' ', s.exchange, s.day, s.kind) as line
     where s.day between ${from}::date and ${to}::date and s.kind <> 'observed'`);
  return rows[0]?.digest ?? '';
}

/** The first and the last trading day that is stored of any operation and exchange; null if none is. */
export async function readStoredRange(db: NodePgDatabase): Promise<DayRange | null> {
  // Of each pair one entry of the index from either end.
  const { rows } = await db.execute<{ from: Day | null; to: Day | null }>(sql`
    select min(first.day)::text as "from", max(last.day)::text as "to"
      from etl.requested_pairs() p
      join ${expectations} e on e.operation = p.operation and e.days = 'sessions'
     cross join lateral (
       select c.day from ${coverage} c
        where c.operation = p.operation and c.exchange = p.exchange and c.state in ('loaded', 'empty')
        order by c.day limit 1
     ) first
     cross join lateral (
       select c.day from ${coverage} c
        where c.operation = p.operation and c.exchange = p.exchange and c.state in ('loaded', 'empty')
        order by c.day desc limit 1
     ) last`);
  const { from = null, to = null } = rows[0] ?? {};
  return from === null || to === null ? null : { from, to };
}

/** The digest that `digestStoredTradingDays` returns for these rows. */
export function digestTradingDays(rows: readonly TradingDayRow[]): string {
  const lines = rows.map(({ exchange, day, kind }) => `${exchange} ${day} ${kind}`).sort();
  return createHash('md5').update(lines.join(',')).digest('hex');
}

/**
 * Writes trading days that are new or have another kind than before; an observed one never replaces another. Rows are
 * written in key order, so that two writers cannot deadlock.
 *
 * @returns the trading days that were written.
 */
export async function writeTradingDays(
  db: NodePgDatabase,
  rows: readonly TradingDayRow[],
): Promise<TradingDayRow[]> {
  if (rows.length === 0) return [];
  const written = await db.execute<TradingDayRow & Record<string, unknown>>(sql`
    insert into ${sessions} as stored (exchange, day, kind)
    select exchange, day, kind
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as s(exchange text, day date, kind text)
     order by exchange, day
    on conflict (exchange, day) do update set kind = excluded.kind
     where stored.kind <> excluded.kind and excluded.kind <> 'observed'
    returning exchange, day::text, kind`);
  return written.rows;
}

/** Removes the stored trading days of a range that are not among these rows. Observed ones stay. */
export async function removeOtherTradingDays(
  db: NodePgDatabase,
  rows: readonly TradingDayRow[],
  { from, to }: DayRange,
): Promise<void> {
  await db.execute(sql`
    delete from ${sessions} where kind <> 'observed' and day between ${from} and ${to}
       and (exchange, day) not in (select exchange, day from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as l(exchange text, day date))`);
}

/** Days that are trading days because data came for them, though no calendar file lists them. */
export function readObservedTradingDays(db: NodePgDatabase): Promise<TradingDayRow[]> {
  return db
    .select()
    .from(sessions)
    .where(eq(sessions.kind, 'observed'))
    .orderBy(sessions.day, sessions.exchange);
}
