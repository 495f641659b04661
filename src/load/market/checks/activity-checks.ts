import { type Check, halfUnit, isT0 } from './quality-check.ts';

/**
 * True if a line of the bhav copy is on the ex-date of a split, consolidation or bonus. Its previous close is printed
 * unadjusted, while other data of the day may compare with an adjusted one.
 */
const isExDate = (row: string) => `exists (
  select from market.corporate_events e
    join market.series_aliases a on a.exchange = e.exchange and a.share_id = e.instrument_id
   where e.status = 'applied' and e.ratio_new is not null
     and e.exchange = ${row}.exchange and e.ex_date = ${row}.trade_date
     and a.symbol = ${row}.symbol and a.series = ${row}.series
     and ${row}.trade_date >= a.valid_from and ${row}.trade_date < a.valid_to)`;

const moved = (row: string) =>
  `((${row}.close_price - ${row}.previous_close_price) * 100 / nullif(${row}.previous_close_price, 0))`;

/** BSE states the turnover in lakhs of rupees, the bhav copy in rupees. */
const LAKH = 100_000;

const differs = (stated: string, exact: string) => `abs(${stated} - ${exact}) > ${halfUnit(stated)}`;

const moverValues: Check = {
  name: 'top_movers_values',
  severity: 'warning',
  operation: 'GetTop5GainersLosers',
  rule: 'A top gainer or loser has the close, quantity and turnover of its row of prices, and its previous close and change but on the ex-date of a split or bonus.',
  dated: true,
  sql: `
    select t.exchange, t.trade_date as date, t.scrip_code::text as instrument, wrong.expected, wrong.found
      from market.top_gainers_losers t
      join complete c on c.exchange = t.exchange and c.day = t.trade_date
      left join market.bhavcopy_cm b on b.exchange = t.exchange and b.trade_date = t.trade_date
        and b.trade_date between $1 and $2 and b.exchange_instrument_id = t.scrip_code
      cross join lateral (
        select string_agg(what || ' ' || coalesce(round(exact, 4)::text, 'none'), ', ') as expected,
               string_agg(what || ' ' || stated, ', ') as found
          from (values ('close', t.close_price, b.close_price),
                       ('previous close', t.previous_close_price, b.previous_close_price),
                       ('percent', t.change_percent, ${moved('b')}),
                       ('quantity', t.quantity, b.traded_quantity),
                       ('turnover in lakhs', t.turnover_lakh, b.turnover / ${LAKH})) as v(what, stated, exact)
         where stated is not null and (exact is null or ${differs('stated', 'exact')})
           and (what not in ('previous close', 'percent') or b.symbol is null or not ${isExDate('b')})) as wrong
     where t.trade_date between $1 and $2 and wrong.found is not null`,
};

/** Every security that moved, with its rank within its side. */
const RANKED = `
  select exchange, trade_date, exchange_instrument_id, change, is_loser,
         row_number() over (partition by exchange, trade_date, is_loser order by abs(change) desc) as rank
    from (
      select b.exchange, b.trade_date, b.exchange_instrument_id, ${moved('b')} as change, ${moved('b')} < 0 as is_loser
        from market.bhavcopy_cm b
       where b.trade_date between $1 and $2 and not ${isT0('b')}
         and b.previous_close_price > 0 and b.close_price <> b.previous_close_price and not ${isExDate('b')}) as changes`;

/** Days whose list has a share on its ex-date, whose change does not follow from the printed closes. */
const EX_DATES = `
  select t.exchange, t.trade_date
    from market.top_gainers_losers t
    join market.bhavcopy_cm b on b.exchange = t.exchange and b.trade_date = t.trade_date
      and b.trade_date between $1 and $2 and b.exchange_instrument_id = t.scrip_code
   where t.trade_date between $1 and $2 and ${isExDate('b')}`;

/** How many ranks each side has, as the operation's name says. */
const RANKS = 5;

const sideOf = (row: string) => `case when ${row}.is_loser then 'losers' else 'gainers' end`;

/**
 * Compares the change at each rank, not the name, because equal changes may come in any order. A side that was not
 * requested (type=Gainers) is not reported as missing.
 */
const moverRanks: Check = {
  name: 'top_movers_ranking',
  severity: 'warning',
  operation: 'GetTop5GainersLosers',
  rule: 'The change at each rank of the list is the change at that rank when all prices of the day are ranked, and no rank is empty. Shares on the ex-date of a split or bonus are left out; a day with one in the list is not looked at.',
  dated: true,
  sql: `
    select t.exchange, t.trade_date as date, t.scrip_code::text as instrument,
           format('rank %s of the %s: %s', t.rank, ${sideOf('t')},
             coalesce(format('%s%% (%s)', round(r.change, 2), r.exchange_instrument_id), 'no share')) as expected,
           t.change_percent || '%' as found
      from market.top_gainers_losers t
      join complete c on c.exchange = t.exchange and c.day = t.trade_date
      left join (${RANKED}
      ) as r on r.exchange = t.exchange and r.trade_date = t.trade_date and r.is_loser = t.is_loser and r.rank = t.rank
     where t.trade_date between $1 and $2 and (t.exchange, t.trade_date) not in (${EX_DATES})
       and (r.change is null or ${differs('t.change_percent', 'r.change')})
    union all
    select r.exchange, r.trade_date, r.exchange_instrument_id::text,
           format('rank %s of the %s: %s%%', r.rank, ${sideOf('r')}, round(r.change, 2)), 'no share at that rank'
      from (${RANKED}) as r
      join complete c on c.exchange = r.exchange and c.day = r.trade_date
      join (
        select exchange, trade_date, is_loser, array_agg(rank) as ranks from market.top_gainers_losers
         where trade_date between $1 and $2 group by exchange, trade_date, is_loser
      ) as s on s.exchange = r.exchange and s.trade_date = r.trade_date and s.is_loser = r.is_loser
     where r.rank <= ${RANKS} and not r.rank = any(s.ranks)
       and (r.exchange, r.trade_date) not in (${EX_DATES})`,
};

/** Price bands of the exchange in percent; new and special lines may have others. */
const BANDS = '2, 5, 10, 20, 40';

/** Bands are rounded to the tick, which is coarser for high prices since April 2025. Unit: rupees. */
const TICK =
  'case when touched > 20000 then 5 when touched > 10000 then 1 when touched > 5000 then 0.5 when touched > 1000 then 0.1 else 0.05 end';

/** A hit with its line of the bhav copy. `touched`: the price that reached the band. `before`: null on an ex-date. */
const HITS = `
  select c.exchange, c.trade_date, c.symbol, c.scrip_id || ' ' || c.series || ' ' || c.band as instrument,
         upper(c.band) as band, b.symbol is not null as listed, case when b.symbol is not null and not ${isExDate('b')} then b.previous_close_price end as before,
         case upper(c.band) when 'H' then b.high_price when 'L' then b.low_price end as touched
    from market.circuit_breakers c
    join complete d on d.exchange = c.exchange and d.day = c.trade_date
    left join market.bhavcopy_cm b on b.exchange = c.exchange and b.trade_date = c.trade_date
      and b.trade_date between $1 and $2 and b.symbol = c.symbol
      and (b.series = c.series or (c.series = '' and not ${isT0('b')}))
   where c.trade_date between $1 and $2`;

const circuitHit: Check = {
  name: 'circuit_hit',
  severity: 'warning',
  operation: 'GetCircuitBreakers',
  rule: 'A security at its upper band (H) traded above its previous close that day, one at its lower band (L) below.',
  dated: true,
  sql: `
    select exchange, trade_date as date, instrument,
           case when not listed then 'a row of prices'
                when band = 'H' then 'a high above ' || before else 'a low below ' || before end as expected,
           case when listed then touched::text else 'none' end as found
      from (${HITS}) as hit
     where not listed or (before > 0 and ((band = 'H' and touched <= before) or (band = 'L' and touched >= before)))`,
};

const circuitBand: Check = {
  name: 'circuit_band',
  severity: 'info',
  operation: 'GetCircuitBreakers',
  rule: `The move to a price band is one of the usual bands (${BANDS} %), to the tick.`,
  dated: true,
  sql: `
    select exchange, trade_date as date, instrument, 'a move of ${BANDS} %' as expected,
           round((touched - before) * 100 / before, 2) || '% from ' || before || ' to ' || touched as found
      from (${HITS}) as hit
     where before > 0 and not exists (
       select from unnest(array[${BANDS}]) as width
        where abs(abs(touched - before) - before * width / 100) <= ${TICK})`,
};

const CRORE = 10_000_000;

interface Sum {
  readonly name: string;
  readonly what: string;
  readonly stated: string;
  /** Over the lines of the bhav copy, in the unit of the highlights. */
  readonly exact: string;
}

const SUMS: readonly Sum[] = [
  { name: 'scrips', what: 'number of securities', stated: 'scrip_count', exact: 'count(*)' },
  { name: 'trades', what: 'number of trades', stated: 'trade_count', exact: 'sum(b.trade_count)' },
  {
    name: 'volume',
    what: 'traded quantity (crores of shares)',
    stated: 'shares_volume_crore',
    exact: `sum(b.traded_quantity)::numeric / ${CRORE}`,
  },
  {
    name: 'turnover',
    what: 'traded value (crores of rupees)',
    stated: 'turnover_crore',
    exact: `sum(b.turnover) / ${CRORE}`,
  },
];

/** `Total` is the sum of the whole bhav copy, `Group A` that of its lines of group A; other labels are not compared. */
function sumCheck({ name, what, stated, exact }: Sum): Check {
  return {
    name: `highlights_${name}`,
    severity: 'warning',
    operation: 'GetTotalTradeHighlights',
    rule: `The ${what} in the highlights is the sum over the prices of the day, to half a unit of the last digit printed.`,
    dated: true,
    sql: `
      select h.exchange, h.trade_date as date, h.trade_highlight as instrument,
             trim_scale(round(s.exact, scale(h.stated) + 2))::text as expected, h.stated::text as found
        from (select *, ${stated}::numeric as stated from market.total_trade_highlights) h
        join complete c on c.exchange = h.exchange and c.day = h.trade_date
        join (
          select b.exchange, b.trade_date, b.series, grouping(b.series) = 1 as is_total, (${exact})::numeric as exact
            from market.bhavcopy_cm b
           where b.trade_date between $1 and $2
           group by grouping sets ((b.exchange, b.trade_date), (b.exchange, b.trade_date, b.series))
        ) as s on s.exchange = h.exchange and s.trade_date = h.trade_date
          and upper(h.trade_highlight) = case when s.is_total then 'TOTAL' else 'GROUP ' || upper(s.series) end
       where h.trade_date between $1 and $2
         and abs(h.stated - s.exact) > ${halfUnit('h.stated')}`,
  };
}

/** The day's lists of the source, compared with the lines of its bhav copy. */
export const activityChecks: readonly Check[] = [
  moverValues,
  moverRanks,
  ...SUMS.map(sumCheck),
  circuitHit,
  circuitBand,
];
