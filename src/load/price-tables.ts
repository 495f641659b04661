import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../core/days.ts';
import { eventSessions, hitBands, priceFactors } from '../state/schema/instrument-tables.ts';

// Tables that views of prices join, so that no query computes them again. Each statement writes only what differs.

/** Brings `etl.price_factors` up to date with the events. */
export async function updatePriceFactors(db: NodePgDatabase): Promise<void> {
  await db.execute(sql`
    with now as materialized (
      select s.exchange, s.instrument_id as share_id, k.*
        from (select distinct exchange, instrument_id from market.corporate_events
               where instrument_id is not null and (ratio_new is not null or status_reason like 'decided by %')) as s
       cross join lateral etl.share_kept_factors(s.exchange, s.instrument_id) as k
    ), gone as (
      delete from ${priceFactors} f
       where (f.exchange, f.share_id, f.known_from, f.valid_from) not in (select exchange, share_id, known_from, valid_from from now)
    )
    insert into ${priceFactors} as f (exchange, share_id, known_from, known_to, valid_from, valid_to, ratio_old, ratio_new)
    select exchange, share_id, known_from, known_to, valid_from, valid_to, ratio_old, ratio_new from now
        on conflict (exchange, share_id, known_from, valid_from) do update
       set known_to = excluded.known_to, valid_to = excluded.valid_to, ratio_old = excluded.ratio_old, ratio_new = excluded.ratio_new
     where (f.known_to, f.valid_to, f.ratio_old, f.ratio_new)
           is distinct from (excluded.known_to, excluded.valid_to, excluded.ratio_old, excluded.ratio_new)`);
}

/** Brings `etl.event_sessions` of an exchange up to date with its factors, names and prices. */
export async function updateEventSessions(db: NodePgDatabase, exchange: string): Promise<void> {
  await db.execute(sql`
    with now as materialized (select s.symbol, s.trade_date from etl.sessions_after_events(${exchange}) as s),
    gone as (
      delete from ${eventSessions} e
       where e.exchange = ${exchange} and (e.symbol, e.trade_date) not in (select n.symbol, n.trade_date from now n)
    )
    insert into ${eventSessions} (exchange, symbol, trade_date) select ${exchange}, n.symbol, n.trade_date from now n
        on conflict do nothing`);
}

/** Brings `etl.hit_bands` of some days up to date with the records; one without a known symbol has none. */
export async function updateHitBands(db: NodePgDatabase, { from, to }: DayRange): Promise<void> {
  await db.execute(sql`
    with now as materialized (
      select c.exchange, c.trade_date, c.symbol, c.series, string_agg(c.band, '' order by c.band) as bands
        from market.circuit_breakers c
       where c.trade_date between ${from}::date and ${to}::date and c.symbol is not null
       group by c.exchange, c.trade_date, c.symbol, c.series
    ), gone as (
      delete from ${hitBands} h
       where h.trade_date between ${from}::date and ${to}::date
         and (h.exchange, h.trade_date, h.symbol, h.series) not in (select exchange, trade_date, symbol, series from now)
    )
    insert into ${hitBands} as h (exchange, trade_date, symbol, series, bands) select * from now
        on conflict (exchange, trade_date, symbol, series) do update set bands = excluded.bands where h.bands <> excluded.bands`);
}
