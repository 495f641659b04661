import { SAME_EVENT_DAYS } from '../load/corporate-events.ts';
import { type Check, lineName, PRECEDING_DAYS } from './quality-check.ts';

/** The widest price band of shares, in percent; some shares have none. */
const WIDEST_BAND = 20;

/**
 * An event moves the open and the close. A price that moved further than the band alone is a stray price, as of funds
 * that few trade, or a move within the trading day, as of shares without a band, whose open moves by at most so many
 * percent.
 */
const NARROW_BAND = 10;

/** Bands are rounded to the tick; the coarsest one, in rupees. */
const TICK = '0.05';

/**
 * A price that differs from the close before times a ratio by at most ABOUT of it fits that ratio: the open, or the close
 * beside an open that is NEAR it where ratios lie far apart, which is below a half and above two.
 */
const ABOUT = '0.03';
const NEAR = '0.15';

/** How many trading days before a day say what is usual of a share. */
const USUAL_TRADING_DAYS = 20;

/** An event that moves the price by less than this share cannot be distinguished from the usual moves of a day. */
const VISIBLE = '0.15';

/** The factors of usual splits, bonuses and consolidations, which prices before them are multiplied by. */
const RATIOS =
  '1:2 1:3 1:4 1:5 1:6 1:8 1:10 1:15 1:20 1:25 1:50 1:100 2:3 2:5 3:4 3:5 3:10 2:1 3:1 4:1 5:1 8:1 10:1 20:1 25:1 50:1 100:1';

/** Kinds of events that change the number of shares by a ratio. */
const BY_RATIO = `('split', 'consolidation', 'bonus')`;

/** Shares and fund units. Other securities may be repaid in part, and rights entitlements have no price band. */
const isShare = (
  row: string,
) => `(${row}.isin ~ '^(INF|IN[E9].{4}01)' or ${row}.isin is null and ${row}.symbol !~ '-RE[0-9]*$'
  and (${row}.exchange <> 'NSE' or ${row}.series in ('EQ', 'BE', 'BZ', 'SM', 'ST', 'SZ', 'IV', 'RR')))`;

/**
 * Trading days of shares with the last close before, under whatever name. Only if the line itself states that close as
 * its previous one: then no trading day is missing in between, and the previous close is not adjusted.
 */
const MOVES = `
  select * from (
    select b.exchange, b.trade_date, b.symbol, b.series, ${lineName('b')} as line, a.instrument_id, b.open_price, b.close_price, b.isin,
           b.previous_close_price, b.trade_count, b.turnover, avg(b.turnover) over (share rows between ${USUAL_TRADING_DAYS} preceding and 1 preceding) as usual_turnover,
           lag(b.close_price) over share as before_close, lag(b.trade_date) over share as before_date,
           lag(b.isin) over share as before_isin
      from market.bhavcopy_cm b
      join market.series_aliases a on a.exchange = b.exchange and a.symbol = b.symbol and a.series = b.series
       and b.trade_date >= a.valid_from and b.trade_date < a.valid_to and a.instrument_id = a.share_id
     where b.trade_date between $1::date - ${PRECEDING_DAYS} and $2::date and ${isShare('b')}
    window share as (partition by b.exchange, a.instrument_id order by b.trade_date)) as every
   where trade_date between $1 and $2 and before_close > 0 and previous_close_price = before_close and open_price > 0 and close_price > 0`;

/** Events of these states; one that is listed under two symbols of a share is counted once. */
const eventsOfShares = (...statuses: ('applied' | 'needs_review')[]) => `(
  select distinct on (exchange, instrument_id, ex_date, kind, item) * from market.corporate_events
   where status in ('${statuses.join("', '")}') and instrument_id is not null
   order by exchange, instrument_id, ex_date, kind, item, symbol)`;

/** True if both prices of the trading day have left the narrow band in this direction, and one of them the widest. */
const areBeyond = (sign: '+' | '-') => {
  const [compared, furthest, nearest] =
    sign === '+' ? ['>', 'greatest', 'least'] : ['<', 'least', 'greatest'];
  const limit = (band: number) => `m.before_close ${sign} (m.before_close * ${band} / 100 + ${TICK})`;
  return `${furthest}(m.open_price, m.close_price) ${compared} ${limit(WIDEST_BAND)}
          and ${nearest}(m.open_price, m.close_price) ${compared} ${limit(NARROW_BAND)}`;
};

/** The last value of a column before a day, and the first from it on, where they differ. */
const changed = (label: string, column: string, table: string, ofShare: string, day: string) => `(
  select '${label} ' || was.value || ' before, ' || later.value || ' after'
    from (select t.${column} as value from ${table} t where ${ofShare} and t.${day} < m.trade_date and t.${column} is not null
           order by t.${day} desc limit 1) as was,
         (select t.${column} as value from ${table} t where ${ofShare} and t.${day} >= m.trade_date and t.${column} is not null
           order by t.${day} limit 1) as later
   where was.value <> later.value)`;

const unexplainedGap: Check = {
  name: 'unexplained_gap',
  severity: 'warning',
  operation: 'GetBhavCopyCM',
  rule: `Open or close of a share lies within ${NARROW_BAND} % of its last close, or both within ${WIDEST_BAND} %, or an event of that day is known.`,
  dated: true,
  sql: `
    select m.exchange, m.trade_date as date, m.line as instrument,
           format('within ${WIDEST_BAND} %% of %s (close of %s), or an event', m.before_close, m.before_date) as expected,
           concat_ws('; ', format('open %s, close %s', m.open_price, m.close_price),
             (select 'as if prices before were to be multiplied by ' || r.ratio
                from (select ratio, split_part(ratio, ':', 1)::numeric / split_part(ratio, ':', 2)::numeric as factor
                        from unnest(string_to_array('${RATIOS}', ' ')) as ratio) as r
               where abs(m.open_price / (m.before_close * r.factor) - 1) <= ${ABOUT}
                  or r.factor not between 0.51 and 1.99 and abs(m.close_price / (m.before_close * r.factor) - 1) <= ${ABOUT}
                     and abs(m.open_price / (m.before_close * r.factor) - 1) <= ${NEAR}
               order by abs(ln(m.open_price / (m.before_close * r.factor))) limit 1),
             m.trade_count || ' trades',
             'turnover ' || round(m.turnover / nullif(m.usual_turnover, 0), 1) || ' times that of the ${USUAL_TRADING_DAYS} trading days before',
             case when m.isin <> m.before_isin then format('ISIN %s before, %s after', m.before_isin, m.isin) end,
             ${changed('face value', 'face_value', 'market.financial_ratios', 't.exchange = m.exchange and upper(t.symbol) = m.symbol', 'as_of_date')},
             ${changed('issued shares', 'total_issued_shares', 'market.consolidated_pledge', 't.exchange = m.exchange and t.scrip_id = m.symbol', 'trade_date')}) as found
      from (${MOVES}) as m
     where (${areBeyond('+')} or ${areBeyond('-')})
       and not exists (
         select from market.corporate_events e
          where e.exchange = m.exchange and e.instrument_id = m.instrument_id
            and e.ex_date > m.before_date and e.ex_date <= m.trade_date
            and (e.kind not in ('dividend', 'interest', 'meeting', 'buyback') or e.kind = 'dividend' and e.status <> 'ignored'
              or e.status_reason like 'decided by %'))`,
};

const factorWithoutGap: Check = {
  name: 'factor_without_gap',
  severity: 'warning',
  operation: 'CorporateEvents',
  rule: 'On the first trading day from the ex-date of an applied split, consolidation or bonus on, open or close is nearer to the adjusted last close than to the unadjusted one.',
  dated: true,
  sql: `
    select exchange, trade_date as date, line as instrument,
           format('about %s: %s (close of %s) times %s', round(before_close * factor, 2), before_close, before_date, round(factor, 6)) as expected,
           format('open %s, close %s', open_price, close_price) as found
      from (
        select m.exchange, m.trade_date, m.line, m.open_price, m.close_price, m.before_close, m.before_date,
               etl.product(e.ratio_old) / etl.product(e.ratio_new) as factor
          from (${MOVES}) as m
          join ${eventsOfShares('applied')} e on e.exchange = m.exchange and e.instrument_id = m.instrument_id
           and e.ex_date > m.before_date and e.ex_date <= m.trade_date
         where e.ratio_new is not null
         group by 1, 2, 3, 4, 5, 6, 7) as moved
     where abs(ln(factor)) >= ${VISIBLE}
       and abs(ln(open_price / before_close)) < abs(ln(open_price / (before_close * factor)))
       and abs(ln(close_price / before_close)) < abs(ln(close_price / (before_close * factor)))`,
};

/**
 * What the lists of an exchange say of shares: one row per day and kind. What a trust distributes is a dividend, of
 * whatever kinds its parts are. A ratio that waits for a decision is not what the other exchange applies.
 */
const selectStatedEvents = (exchange: 'NSE' | 'BSE') => `
  select instrument_id, ex_date, kind, min(symbol) as symbol,
         case when kind = 'dividend' then 'Rs ' || trim_scale(sum(amount))
              when bool_and(status = 'applied') then max(ratio_new || ':' || ratio_old) else 'not decided' end as what
    from (select instrument_id, symbol, ex_date, amount, ratio_new, ratio_old, status,
                 case when status = 'applied' and ratio_new is null then 'dividend' else kind end as kind
            from ${eventsOfShares('applied', 'needs_review')} e
           where e.exchange = '${exchange}' and coalesce(e.listed_by, e.exchange) = e.exchange
             and (status = 'applied' and ratio_new is null or kind in ${BY_RATIO})) e
   where ex_date between $1::date - ${SAME_EVENT_DAYS} and $2::date + ${SAME_EVENT_DAYS}
   group by instrument_id, ex_date, kind`;

/** By any of their ISINs, because a split changes the ISIN, and not on both exchanges in files that are stored. */
const SAME_SHARES = `
  select distinct n.instrument_id as nse, b.instrument_id as bse
    from market.instrument_aliases n join market.instrument_aliases b on b.kind = n.kind and b.alias = n.alias
   where n.kind = 'isin' and n.exchange = 'NSE' and b.exchange = 'BSE'`;

const sameEventDiffers: Check = {
  name: 'same_event_differs',
  severity: 'warning',
  operation: 'CorporateEvents',
  rule: `Where both exchanges list an event of a share (by ISIN), those of one kind within ${SAME_EVENT_DAYS} days have one day and one ratio (dividends: one sum), and no ratio of only one exchange waits for a decision.`,
  dated: true,
  sql: `
    select 'NSE' as exchange, n.ex_date as date, n.symbol || ' ' || n.kind as instrument,
           string_agg(format('%s on %s (BSE)', b.what, b.ex_date), ', ' order by b.ex_date) as expected,
           format('%s on %s', n.what, n.ex_date) as found
      from (${selectStatedEvents('NSE')}) as n
      join (${SAME_SHARES}) as s on s.nse = n.instrument_id
      join (${selectStatedEvents('BSE')}) as b on b.instrument_id = s.bse and b.kind = n.kind
     where n.ex_date between $1 and $2
       and abs(b.ex_date - n.ex_date) <= ${SAME_EVENT_DAYS}
     group by n.ex_date, n.symbol, n.kind, n.what
    having not bool_or(b.ex_date = n.ex_date and b.what = n.what)`,
};

const beforeEventLists: Check = {
  name: 'before_event_lists',
  severity: 'warning',
  operation: 'CorporateEvents',
  rule: 'Where lists of corporate actions of an exchange are loaded, they begin no later than its prices: adjusted prices before them lack the splits and bonuses of that time.',
  dated: false,
  sql: `
    select l.exchange, l.known_from as date, '' as instrument, format('lists of corporate actions from %s on, as prices', p.first) as expected,
           format('the first ex-date is %s: earlier adjusted prices lack the splits and bonuses before it', l.known_from) as found
      from etl.event_lists l
     cross join lateral (select min(b.trade_date) as first from market.bhavcopy_cm b where b.exchange = l.exchange) p
     where p.first < l.known_from`,
};

const afterEventLists: Check = {
  name: 'after_event_lists',
  severity: 'warning',
  operation: 'CorporateEvents',
  rule: 'Where lists of corporate actions of an exchange are loaded, they have an ex-date of every 30 days as long as its prices go on.',
  dated: false,
  sql: `
    select exchange, listed_to as date, '' as instrument, 'an ex-date within 30 days, as prices go on' as expected,
           format('none %s: earlier adjusted prices lack the splits and bonuses of that time',
             case when listed_from = 'infinity' then 'after ' || listed_to else format('between %s and %s', listed_to, listed_from) end) as found
      from etl.unlisted_days`,
};

export const eventChecks: readonly Check[] = [
  unexplainedGap,
  factorWithoutGap,
  sameEventDiffers,
  beforeEventLists,
  afterEventLists,
];
