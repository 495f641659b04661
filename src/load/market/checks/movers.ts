import { type Check, halfUnit, isExDate, isT0 } from './quality-check.ts';

const moved = (row: string) =>
  `((${row}.close_price - ${row}.previous_close_price) * 100 / nullif(${row}.previous_close_price, 0))`;

/** BSE states the turnover in lakhs of rupees, the bhav copy in rupees. */
const LAKH = 100_000;

const differs = (stated: string, exact: string) => `abs(${stated} - ${exact}) > ${halfUnit(stated)}`;

const moverValues: Check = {
  name: 'top_movers_values',
  severity: 'warning',
  operation: 'GetTop5GainersLosers',
  rule: 'A top gainer or loser has the close, quantity and turnover of its line in the bhav copy, and its previous close and change but on the ex-date of a split or bonus.',
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
         row_number() over (partition by exchange, trade_date, is_loser order by abs(change) desc) as place
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

/** How many places each side has, as the operation's name says. */
const PLACES = 5;

const sideOf = (row: string) => `case when ${row}.is_loser then 'losers' else 'gainers' end`;

/**
 * Compares the change at each place, not the name, because equal changes may come in any order. A side that was not
 * asked for (type=Gainers) is not reported as missing.
 */
const moverRanks: Check = {
  name: 'top_movers_ranking',
  severity: 'warning',
  operation: 'GetTop5GainersLosers',
  rule: 'The change at each place of the list is the change at that place when the whole bhav copy is ranked, and no place is empty. Shares on the ex-date of a split or bonus are left out; a day with one in the list is not looked at.',
  dated: true,
  sql: `
    select t.exchange, t.trade_date as date, t.scrip_code::text as instrument,
           format('place %s of the %s: %s', t.rank, ${sideOf('t')},
             coalesce(format('%s%% (%s)', round(r.change, 2), r.exchange_instrument_id), 'nobody')) as expected,
           t.change_percent || '%' as found
      from market.top_gainers_losers t
      join complete c on c.exchange = t.exchange and c.day = t.trade_date
      left join (${RANKED}
      ) as r on r.exchange = t.exchange and r.trade_date = t.trade_date and r.is_loser = t.is_loser and r.place = t.rank
     where t.trade_date between $1 and $2 and (t.exchange, t.trade_date) not in (${EX_DATES})
       and (r.change is null or ${differs('t.change_percent', 'r.change')})
    union all
    select r.exchange, r.trade_date, r.exchange_instrument_id::text,
           format('place %s of the %s: %s%%', r.place, ${sideOf('r')}, round(r.change, 2)), 'nobody at that place'
      from (${RANKED}) as r
      join complete c on c.exchange = r.exchange and c.day = r.trade_date
      join (
        select exchange, trade_date, is_loser, array_agg(rank) as ranks from market.top_gainers_losers
         where trade_date between $1 and $2 group by exchange, trade_date, is_loser
      ) as s on s.exchange = r.exchange and s.trade_date = r.trade_date and s.is_loser = r.is_loser
     where r.place <= ${PLACES} and not r.place = any(s.ranks)
       and (r.exchange, r.trade_date) not in (${EX_DATES})`,
};

export const moverChecks: readonly Check[] = [moverValues, moverRanks];
