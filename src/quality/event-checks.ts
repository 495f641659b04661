import { SAME_EVENT_DAYS } from '../load/corporate-events.ts';
import { type Check, LINE_NAME, PRECEDING_DAYS } from './quality-check.ts';

/** The widest price band of shares, in percent; some shares have none. */
const WIDEST_BAND = 20;

/**
 * An event moves both open and close. If only one of them moved by more than this many percent, it is a stray price, as
 * funds with few trades have, or the price moved during the day, as that of shares without a band may.
 */
const NARROW_BAND = 10;

/** Bands are rounded to the tick; the coarsest one, in rupees. */
const TICK = '0.05';

/**
 * A price fits a ratio if it differs from the last close times the ratio by at most ABOUT of that product. A move fits a
 * ratio if its open does. Ratios of a half or less, and of two or more, lie far apart: for these it is enough that the
 * close fits and that the open differs by at most NEAR.
 */
const ABOUT = '0.03';
const NEAR = '0.15';

/** The usual turnover of a share is its average over this many trading days before. */
const USUAL_TRADING_DAYS = 20;

/** An event whose factor has a natural logarithm below this, in absolute value, cannot be told from usual moves of a day. */
const LEAST_LOG_FACTOR = '0.15';

/** The factors of usual splits, bonuses and consolidations, which prices before them are multiplied by. */
const RATIOS =
  '1:2 1:3 1:4 1:5 1:6 1:8 1:10 1:15 1:20 1:25 1:50 1:100 2:3 2:5 3:4 3:5 3:10 2:1 3:1 4:1 5:1 8:1 10:1 20:1 25:1 50:1 100:1';

/** Shares and fund units. Other securities may be repaid in part, and rights entitlements have no price band. */
const IS_SHARE = `(
         line.isin ~ '^(INF|IN[E9].{4}01)'
         or (
           line.isin is null
           and line.symbol !~ '-RE[0-9]*$'
           and (line.exchange <> 'NSE' or line.series in ('EQ', 'BE', 'BZ', 'SM', 'ST', 'SZ', 'IV', 'RR'))
         )
       )`;

/**
 * Lines of shares, each with the close of the share's line before, also under an earlier name. Only those whose previous
 * close is that close: then no trading day is missing in between, and the previous close was not adjusted for an event.
 */
const MOVES = `
  select * from (
    select line.exchange, line.trade_date, line.symbol, line.series, ${LINE_NAME} as line, alias.instrument_id,
           line.open_price, line.close_price, line.isin, line.previous_close_price, line.trade_count, line.turnover,
           avg(line.turnover) over (share rows between ${USUAL_TRADING_DAYS} preceding and 1 preceding) as usual_turnover,
           lag(line.close_price) over share as before_close, lag(line.trade_date) over share as before_date,
           lag(line.isin) over share as before_isin
      from market.bhavcopy_cm line
      join market.series_aliases alias
        on alias.exchange = line.exchange
       and alias.symbol = line.symbol
       and alias.series = line.series
       and line.trade_date >= alias.valid_from
       and line.trade_date < alias.valid_to
       and alias.instrument_id = alias.share_id
     where line.trade_date between $1::date - ${PRECEDING_DAYS} and $2::date
       and ${IS_SHARE}
    window share as (partition by line.exchange, alias.instrument_id order by line.trade_date)) as moves
   where trade_date between $1 and $2
     and before_close > 0
     and previous_close_price = before_close
     and open_price > 0
     and close_price > 0`;

/** Corporate events of these statuses, each once, even if it is listed under two symbols of a share. */
const eventsOfShares = (...statuses: ('applied' | 'needs_review')[]) => `(
  select distinct on (exchange, instrument_id, ex_date, kind, item) * from market.corporate_events
   where status in ('${statuses.join("', '")}') and instrument_id is not null
   order by exchange, instrument_id, ex_date, kind, item, symbol)`;

/** True if both prices of the trading day have left the narrow band in this direction, and one of them the widest. */
const areBeyond = (sign: '+' | '-') => {
  const [compared, furthest, nearest] =
    sign === '+' ? ['>', 'greatest', 'least'] : ['<', 'least', 'greatest'];
  const limit = (band: number) => `move.before_close ${sign} (move.before_close * ${band} / 100 + ${TICK})`;
  return `${furthest}(move.open_price, move.close_price) ${compared} ${limit(WIDEST_BAND)}
          and ${nearest}(move.open_price, move.close_price) ${compared} ${limit(NARROW_BAND)}`;
};

const unexplainedGap: Check = {
  name: 'unexplained_gap',
  severity: 'warning',
  operation: 'GetBhavCopyCM',
  rule: `Open or close of a share lies within ${NARROW_BAND} % of its last close, or both within ${WIDEST_BAND} %, or an event of that day is known.`,
  dated: true,
  sql: `
    select move.exchange, move.trade_date as date, move.line as instrument,
           format('within ${WIDEST_BAND} %% of %s (close of %s), or an event', move.before_close, move.before_date) as expected,
           concat_ws('; ', format('open %s, close %s', move.open_price, move.close_price),
             (select 'as if prices before were to be multiplied by ' || listed.ratio
                from unnest(string_to_array('${RATIOS}', ' ')) as listed(ratio)
               cross join lateral (
                 select split_part(listed.ratio, ':', 1)::numeric / split_part(listed.ratio, ':', 2)::numeric as factor) as divided
               cross join lateral (
                 select move.open_price / (move.before_close * divided.factor) as open,
                        move.close_price / (move.before_close * divided.factor) as close) as multiples
               where abs(multiples.open - 1) <= ${ABOUT}
                  or (
                    divided.factor not between 0.51 and 1.99
                    and abs(multiples.close - 1) <= ${ABOUT}
                    and abs(multiples.open - 1) <= ${NEAR}
                  )
               order by abs(ln(multiples.open))
               limit 1),
             move.trade_count || ' trades',
             'turnover ' || round(move.turnover / nullif(move.usual_turnover, 0), 1) || ' times that of the ${USUAL_TRADING_DAYS} trading days before',
             case when move.isin <> move.before_isin then format('ISIN %s before, %s after', move.before_isin, move.isin) end) as found
      from (${MOVES}) as move
     where (${areBeyond('+')} or ${areBeyond('-')})
       and not exists (
         select from market.corporate_events event
          where event.exchange = move.exchange
            and event.instrument_id = move.instrument_id
            and event.ex_date > move.before_date
            and event.ex_date <= move.trade_date
            and (
              event.kind not in ('dividend', 'interest', 'meeting', 'buyback')
              or (event.kind = 'dividend' and event.status <> 'ignored')
              or event.status_reason like 'decided by %'
            ))`,
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
        select move.exchange, move.trade_date, move.line, move.open_price, move.close_price, move.before_close, move.before_date,
               etl.product(event.ratio_old) / etl.product(event.ratio_new) as factor
          from (${MOVES}) as move
          join ${eventsOfShares('applied')} event
            on event.exchange = move.exchange
           and event.instrument_id = move.instrument_id
           and event.ex_date > move.before_date
           and event.ex_date <= move.trade_date
         where event.ratio_new is not null
         group by move.exchange, move.trade_date, move.line, move.open_price, move.close_price, move.before_close,
                  move.before_date) as expected_move
     where abs(ln(factor)) >= ${LEAST_LOG_FACTOR}
       and abs(ln(open_price / before_close)) < abs(ln(open_price / (before_close * factor)))
       and abs(ln(close_price / before_close)) < abs(ln(close_price / (before_close * factor)))`,
};

/**
 * What the lists of an exchange say about shares: one row for each ex-date and kind. An applied event without a ratio
 * counts as a dividend, because a trust distributes interest and capital as well. A ratio that waits for a decision is
 * `not decided`, which differs from any ratio that the other exchange applies.
 */
const selectListedEvents = (exchange: 'NSE' | 'BSE') => `
  select instrument_id, ex_date, kind, min(symbol) as symbol,
         case when kind = 'dividend' then 'Rs ' || trim_scale(sum(amount))
              when bool_and(status = 'applied') then max(ratio_new || ':' || ratio_old) else 'not decided' end as terms
    from (select instrument_id, symbol, ex_date, amount, ratio_new, ratio_old, status,
                 case when status = 'applied' and ratio_new is null then 'dividend' else kind end as kind
            from ${eventsOfShares('applied', 'needs_review')} event
           where event.exchange = '${exchange}'
             and coalesce(event.listed_by, event.exchange) = event.exchange
             and (
               (status = 'applied' and ratio_new is null)
               or kind in ('split', 'consolidation', 'bonus')
             )) as event_line
   where ex_date between $1::date - ${SAME_EVENT_DAYS} and $2::date + ${SAME_EVENT_DAYS}
   group by instrument_id, ex_date, kind`;

/**
 * The shares of NSE and BSE that have an ISIN in common. Any of them will do: a split changes the ISIN, and the stored
 * files may have the new one of only one exchange.
 */
const SAME_SHARES = `
  select distinct nse.instrument_id as nse, bse.instrument_id as bse
    from market.instrument_aliases nse
    join market.instrument_aliases bse on bse.kind = nse.kind and bse.alias = nse.alias
   where nse.kind = 'isin'
     and nse.exchange = 'NSE'
     and bse.exchange = 'BSE'`;

const sameEventDiffers: Check = {
  name: 'same_event_differs',
  severity: 'warning',
  operation: 'CorporateEvents',
  rule: `Where both exchanges list an event of a share (by ISIN), those of one kind within ${SAME_EVENT_DAYS} days have one day and one ratio (dividends: one sum), and no ratio of only one exchange waits for a decision.`,
  dated: true,
  sql: `
    select 'NSE' as exchange, nse.ex_date as date, nse.symbol || ' ' || nse.kind as instrument,
           string_agg(format('%s on %s (BSE)', bse.terms, bse.ex_date), ', ' order by bse.ex_date) as expected,
           format('%s on %s', nse.terms, nse.ex_date) as found
      from (${selectListedEvents('NSE')}) as nse
      join (${SAME_SHARES}) as same on same.nse = nse.instrument_id
      join (${selectListedEvents('BSE')}) as bse on bse.instrument_id = same.bse and bse.kind = nse.kind
     where nse.ex_date between $1 and $2
       and abs(bse.ex_date - nse.ex_date) <= ${SAME_EVENT_DAYS}
     group by nse.ex_date, nse.symbol, nse.kind, nse.terms
    having not bool_or(bse.ex_date = nse.ex_date and bse.terms = nse.terms)`,
};

const beforeEventLists: Check = {
  name: 'before_event_lists',
  severity: 'warning',
  operation: 'CorporateEvents',
  rule: 'Where lists of corporate actions of an exchange are loaded, they begin no later than its prices: adjusted prices before them lack the splits and bonuses of that time.',
  dated: false,
  sql: `
    select lists.exchange, lists.known_from as date, '' as instrument,
           format('lists of corporate actions from %s on, as prices', prices.first) as expected,
           format('the first ex-date is %s: earlier adjusted prices lack the splits and bonuses before it', lists.known_from) as found
      from etl.event_lists lists
     cross join lateral (
       select min(line.trade_date) as first from market.bhavcopy_cm line where line.exchange = lists.exchange) as prices
     where prices.first < lists.known_from`,
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
