import type { Pool } from 'pg';
import { type RowOf, SOURCE_AUDIT } from '../declaration/table.ts';
import { corporateEvents } from '../operations/files/CorporateEvents.ts';
import { LOADS } from '../state/loads/loads.ts';

// What corporate events are computed from, and the stored events.

/** A line of a list of corporate actions, or a record of the source's. */
export interface Notice {
  readonly exchange: string;
  readonly symbol: string;
  /** Empty if the list has none. */
  readonly series: string;
  readonly exDate: string;
  readonly purpose: string;
  readonly scripCode: number | null;
  readonly recordDate: string | null;
  /** Kind and ratio, if the list states them in addition to the purpose. */
  readonly statedKind: string | null;
  readonly statedRatio: string | null;
  /** Type in words, and amount or ratio, as the source service sends them; null for a list. */
  readonly announced: { readonly type: string; readonly detail: string | null } | null;
  /** True if its list may have cut the purpose. NSE's daily lists do so after 25 characters. */
  readonly mayBeCut: boolean;
  /**
   * True if the symbol is that of the ex-date. An export has the symbols of the day of the export, which may be years
   * later.
   */
  readonly symbolOfDay: boolean;
  /** Identifies the response or file it is from: when that was fetched or first read, in milliseconds since 1970. */
  readonly readAt: number;
}

/** The two exchanges may have different ex-dates; further apart than this many days it is another event. */
export const SAME_EVENT_DAYS = 7;

/** NSE's daily lists cut purposes at this length. */
const DAILY_LIST_CUTS_AT = 25;

/** All notices of corporate actions of an exchange, in the order of their days. */
export async function readNotices(pool: Pool, exchange: string): Promise<Notice[]> {
  const result = await pool.query<Notice>(
    `select n.exchange, symbol, series, ex_date::text as "exDate", purpose, scrip_code as "scripCode",
            record_date::text as "recordDate", nullif(stated_kind, '') as "statedKind", stated_ratio as "statedRatio", null as announced,
            -- Only the export has face values: a line with one was printed there in full.
            n.is_daily is true and face_value is null and length(purpose) >= ${DAILY_LIST_CUTS_AT} as "mayBeCut",
            n.is_daily is true as "symbolOfDay", (extract(epoch from l.fetched_at) * 1000)::float8 as "readAt"
       from market.corporate_action_notices n join ${LOADS} l on l.id = n.load_id where n.exchange = $1
     union all
     select a.exchange, a.symbol, '', a.prov_xdate::text, concat_ws(' ', a.corporate_action_type, a.ratio_amount),
            nullif(a.scrip_code, 0), a.bc_rd_from::text, null, null,
            json_build_object('type', a.corporate_action_type, 'detail', a.ratio_amount), false, true, (extract(epoch from l.fetched_at) * 1000)::float8
       from market.corporate_actions a join ${LOADS} l on l.id = a.load_id
      where a.exchange = $1 and a.symbol is not null and a.prov_xdate is not null and a.corporate_action_type is not null
      order by 4, 2, 5, 13, 3, 8`,
    [exchange],
  );
  return result.rows;
}

/** The tables that `readNotices` reads. */
export const NOTICE_TABLES: readonly string[] = ['corporate_action_notices', 'corporate_actions'];

/** True if exactly these events are stored for an exchange. */
export async function areStored(
  pool: Pool,
  exchange: string,
  rows: readonly RowOf<typeof corporateEvents>[],
): Promise<boolean> {
  const audit: readonly string[] = SOURCE_AUDIT;
  // The other columns say when and by which load a row was written.
  const columns = corporateEvents.fields
    .map(({ column }) => column)
    .filter((column) => !audit.includes(column))
    .join(', ');
  const result = await pool.query<{ differs: boolean }>(
    `with expected as (select ${columns} from jsonb_populate_recordset(null::market.corporate_events, $2)),
          stored as (select ${columns} from market.corporate_events where exchange = $1)
     select exists (table expected except table stored) or exists (table stored except table expected) as differs`,
    [exchange, JSON.stringify(rows)],
  );
  return result.rows[0]?.differs === false;
}

/** An instrument that has had a symbol. */
export interface SymbolOwner {
  readonly symbol: string;
  readonly instrumentId: string;
  /** The days on which the symbol means it, `to` excluded; `-infinity` and `infinity` for no bound. */
  readonly from: string;
  readonly to: string;
  /** Its first trading day. */
  readonly firstSeen: string;
}

/** The instruments that have had any of these symbols on an exchange, in the order in which they had it. */
export async function readSymbolOwners(
  pool: Pool,
  exchange: string,
  symbols: readonly string[],
): Promise<SymbolOwner[]> {
  const result = await pool.query<SymbolOwner>(
    `select a.alias as symbol, a.instrument_id as "instrumentId", a.valid_from::text as "from", a.valid_to::text as "to",
            i.first_seen::text as "firstSeen"
       from market.instrument_aliases a join market.instruments i using (exchange, instrument_id)
      where a.exchange = $1 and a.kind = 'symbol' and a.alias = any($2) order by a.alias, a.valid_to`,
    [exchange, symbols],
  );
  return result.rows;
}

/** A symbol of a line that a share of one exchange has on the other. */
export interface LineElsewhere {
  /** The share on the one exchange. */
  readonly shareId: string;
  /** The other exchange, and the instrument that is the share there. */
  readonly exchange: string;
  readonly instrumentId: string;
  readonly symbol: string;
  /** The first trading day under this symbol. */
  readonly firstSeen: string;
}

/**
 * The lines that shares have on the other exchange: those with any of their ISINs, because a split changes the ISIN, and
 * not on both exchanges in files that are stored.
 */
export async function readLinesElsewhere(pool: Pool): Promise<LineElsewhere[]> {
  const result = await pool.query<LineElsewhere>(
    // Two lists, because the planner takes a condition on one list of both for much rarer than it is, and then compares
    // each name with each.
    `with isins as materialized (
       select distinct exchange, alias, instrument_id from market.instrument_aliases where kind = 'isin'),
     symbols as materialized (
       select distinct exchange, alias, instrument_id, first_seen from market.instrument_aliases where kind = 'symbol')
     select distinct i.instrument_id as "shareId", o.exchange, o.instrument_id as "instrumentId", s.alias as symbol,
            s.first_seen::text as "firstSeen"
       from isins i
       join isins o on o.alias = i.alias and o.exchange <> i.exchange
       join symbols s on s.exchange = o.exchange and s.instrument_id = o.instrument_id
      order by 1, 3, 5, 4`,
  );
  return result.rows;
}

/** Scrip codes that name an instrument of BSE. */
export async function readScripCodes(pool: Pool): Promise<ReadonlyMap<number, string>> {
  const result = await pool.query<{ alias: string; instrument_id: string }>(
    `select alias, max(instrument_id) as instrument_id from market.instrument_aliases
      where exchange = 'BSE' and kind = 'scrip_code' group by alias`,
  );
  return new Map(result.rows.map((row) => [Number(row.alias), row.instrument_id]));
}

/** The symbols of those of these texts that are scrip codes of BSE; a text of digits that is the symbol of a row is none. */
export async function readCodesAsSymbols(
  pool: Pool,
  texts: readonly string[],
): Promise<{ readonly code: string; readonly symbol: string | null }[]> {
  const codes = texts.filter((text) => /^\d{1,9}$/.test(text));
  if (codes.length === 0) return [];
  const { rows } = await pool.query<{ code: string; symbol: string | null }>(
    `select code, (select min(i.symbol) from market.instruments i where i.exchange = 'BSE' and i.scrip_code = code::bigint and i.symbol <> code) as symbol
       from unnest($1::text[]) as code
      where not exists (select from market.instrument_aliases a where a.kind = 'symbol' and a.alias = code)`,
    [codes],
  );
  return rows;
}

/** An event as commands and pages show it. */
export interface StoredEvent {
  readonly id: string;
  readonly exchange: string;
  readonly symbol: string;
  readonly instrumentId: string | null;
  readonly exDate: string;
  readonly kind: string;
  readonly purpose: string | null;
  /** Shares after the event for shares before it, e.g. `5:1`; null if it has none. */
  readonly ratio: string | null;
  readonly priceFactor: string | null;
  readonly amount: string | null;
  readonly status: string;
  readonly statusReason: string | null;
  /** Whose list has it: not `exchange` if only the other one lists it. */
  readonly listedBy: string | null;
  /** Of one without a decision: `etl.price_effect`, in percent; null if that is not known. */
  readonly effect: number | null;
}

/** Which events; nothing given means all. */
export interface EventFilter {
  readonly ids?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Also events of the same share under its other symbols. */
  readonly symbol?: string | undefined;
  readonly kinds?: readonly string[] | undefined;
  readonly statuses?: readonly string[] | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** How far an event moves the price, as SQL; computed after the limit where nothing is sorted by it. */
const EFFECT = `case when status = 'needs_review' then
                   etl.price_effect(exchange, instrument_id, ex_date, kind, ratio_old::numeric / ratio_new, amount) end`;

/**
 * Events, and how many match in all: the newest ex-dates first, but of those without a decision first demergers, splits and
 * what else changes the shares, then what moves the price most.
 */
export async function listEvents(
  pool: Pool,
  { ids, exchanges, symbol, kinds, statuses, from, to }: EventFilter,
  limit: number,
): Promise<{ readonly total: number; readonly events: readonly StoredEvent[] }> {
  const areUndecided = statuses?.every((status) => status === 'needs_review') === true;
  const order = areUndecided ? 'etl.changes_shares(kind) desc, effect desc nulls last, ' : '';
  const result = await pool.query<StoredEvent & { total: string }>(
    `select event_id as id, exchange, symbol, instrument_id as "instrumentId", ex_date::text as "exDate", kind, purpose,
            ratio_new || ':' || ratio_old as ratio, price_factor::text as "priceFactor", amount::text, status,
            status_reason as "statusReason", listed_by as "listedBy", effect::float8, count(*) over () as total
       from (select *, ${EFFECT} as effect from market.corporate_events) e
      where ($1::text[] is null or event_id = any($1)) and ($2::text[] is null or exchange = any($2))
        and ($3::text is null or symbol = $3 or exists (
              select from market.instrument_aliases a
               where a.exchange = e.exchange and a.kind = 'symbol' and a.alias = $3 and a.instrument_id = e.instrument_id))
        and ($4::text[] is null or kind = any($4)) and ($5::text[] is null or status = any($5))
        and ($6::date is null or ex_date >= $6) and ($7::date is null or ex_date <= $7)
      order by ${order}ex_date desc, exchange, symbol, e.kind, item limit $8`,
    [ids, exchanges, symbol, kinds, statuses, from, to, limit].map((value) => value ?? null),
  );
  return {
    total: Number(result.rows[0]?.total ?? 0),
    events: result.rows.map(({ total: _, ...event }) => event),
  };
}

/**
 * The ids of an event and of the same event on the other exchange, or under other symbols of the share: the rows that
 * are one in `market.share_events`. None if there is no event with this id.
 */
export async function idsOfEvent(pool: Pool, eventId: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `with e as materialized (select event_id, share, kind, item, chain, nth from etl.events_of_shares(null))
     select o.event_id as id from e join e o using (share, kind, item, chain, nth) where e.event_id = $1`,
    [eventId],
  );
  return rows.map(({ id }) => id);
}

/**
 * The undecided events, with the ids of their rows, by how many percent each moves the price. Null: not known, as of a
 * demerger, a split without a ratio or rights without a premium: on its ex-date the market may have moved the price back.
 */
export async function readUndecided(
  pool: Pool,
): Promise<{ readonly ids: readonly string[]; readonly effect: number | null }[]> {
  const { rows } = await pool.query<{ ids: string[]; effect: number | null }>(
    `select array_agg(event_id order by event_id) as ids, max(effect)::float8 as effect
       from (select *, ${EFFECT} as effect from etl.events_of_shares('needs_review')) e
      group by share, kind, item, chain, nth order by 1`,
  );
  return rows;
}
