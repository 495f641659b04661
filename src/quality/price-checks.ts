import { type Check, isT0, lineName, PRECEDING_DAYS } from './quality-check.ts';

/** Old files print 0 for a missing price, which is no finding. */
const outside = (price: string) => `(b.${price} > 0 and not b.${price} between b.low_price and b.high_price)`;

const priceOrder: Check = {
  name: 'price_order',
  severity: 'error',
  operation: 'GetBhavCopyCM',
  rule: "Open, close and last price lie between the day's low and high (the close of T+0 lines is that of the security's own line, and may not).",
  dated: true,
  sql: `
    select b.exchange, b.trade_date as date, ${lineName('b')} as instrument,
           format('from %s to %s', b.low_price, b.high_price) as expected,
           concat_ws(', ',
             case when b.low_price > b.high_price then 'low above high' end,
             case when ${outside('open_price')} then 'open ' || b.open_price end,
             case when ${outside('close_price')} and not ${isT0('b')} then 'close ' || b.close_price end,
             case when ${outside('last_price')} then 'last ' || b.last_price end) as found
      from market.bhavcopy_cm b
     where b.trade_date between $1 and $2
       and (b.low_price > b.high_price or ${outside('open_price')} or ${outside('last_price')}
            or (${outside('close_price')} and not ${isT0('b')}))`,
};

const PRICES = 'open high low close last previous_close settlement'.split(' ').map((name) => `${name}_price`);

const pricePositive: Check = {
  name: 'price_positive',
  severity: 'error',
  operation: 'GetBhavCopyCM',
  rule: 'No price is below 0, and the close is above it (0 in another price means that there is none).',
  dated: true,
  sql: `
    select b.exchange, b.trade_date as date, ${lineName('b')} as instrument,
           'no price below 0, a close above 0' as expected,
           concat_ws(', ', case when b.close_price = 0 then 'close 0' end, ${PRICES.map(
             (price) =>
               `case when b.${price} < 0 then '${price.replace('_price', '').replace('_', ' ')} ' || b.${price} end`,
           ).join(', ')}) as found
      from market.bhavcopy_cm b
     where b.trade_date between $1 and $2 and (b.close_price = 0 or ${PRICES.map((price) => `b.${price} < 0`).join(' or ')})`,
};

/** The closes of each line with its previous close. `stretch` numbers unbroken sequences of loaded trading days. */
const NEIGHBOURS = `
  select l.*, lag(l.close_price) over line as before_close, lag(l.trade_date) over line as before_date,
         lag(l.stretch) over line as before_stretch
    from (
      select b.exchange, b.symbol, b.series, b.trade_date, b.isin, b.exchange_instrument_id, b.close_price,
             b.previous_close_price, d.stretch
        from market.bhavcopy_cm b
        join (
          select exchange, day, loaded,
                 position - row_number() over (partition by exchange, loaded order by day) as stretch
            from (
              select exchange, day, bool_or(loaded) as loaded,
                     row_number() over (partition by exchange order by day) as position
                from (select exchange, day, false as loaded from sessions
                      union all select exchange, day, true from complete) as known
               where day between $1::date - ${PRECEDING_DAYS} and $2::date
               group by exchange, day) as days
        ) as d on d.exchange = b.exchange and d.day = b.trade_date and d.loaded
       where b.trade_date between $1::date - ${PRECEDING_DAYS} and $2::date) as l
  window line as (partition by l.exchange, l.symbol, l.series order by l.trade_date)`;

/** The condition that the security had that close under another series or name since the line's last trading day. */
const closedElsewhere = (sameSecurity: string) => `
  exists (
    select from market.bhavcopy_cm o
     where o.exchange = n.exchange and ${sameSecurity} and o.close_price = n.previous_close_price
       and (o.symbol, o.series) <> (n.symbol, n.series)
       and o.trade_date between $1::date - ${PRECEDING_DAYS} and $2::date
       and o.trade_date >= n.before_date and o.trade_date < n.trade_date)`;

/** A price goes ex at most this many days before the record date. */
const RECORD_DATE_DAYS = 4;

/** More lines of a day than this, and more than this share of them, are one fault of the file and not of each line. */
const MANY = 20;
const MOST = '0.25';

/**
 * Compares with the line's last earlier close, only within an unbroken sequence of loaded trading days: across a gap
 * the close before is not known.
 */
const previousClose: Check = {
  name: 'previous_close',
  severity: 'warning',
  operation: 'GetBhavCopyCM',
  rule: 'The previous close is the last close of the same symbol and series, unless a listing, a corporate action or a move between series explains it.',
  dated: true,
  sql: `
    select exchange, trade_date as date,
           case when is_file then '' else instrument end as instrument,
           case when is_file then 'the closes of the trading day before' else expected end as expected,
           case when is_file then format('%s of %s lines have another previous close', wrong, compared)
                else previous_close_price::text end as found
      from (
        select *, wrong > ${MANY} and wrong > compared * ${MOST} as is_file
          from (
            select n.*, ${lineName('n')} as instrument, count(*) over (partition by n.exchange, n.trade_date) as wrong,
                   format('%s (close of %s)', n.before_close, n.before_date) as expected
              from (
                select *, count(*) over (partition by exchange, trade_date) as compared
                  from (${NEIGHBOURS}) as every
                 where trade_date between $1 and $2 and previous_close_price > 0 and before_stretch = stretch
              ) as n
             where n.previous_close_price <> n.before_close
               and not ${closedElsewhere('o.isin = n.isin')}
               and not ${closedElsewhere('o.exchange_instrument_id = n.exchange_instrument_id')}
               and not ${closedElsewhere('o.symbol = n.symbol and (o.isin is null or n.isin is null)')}
               and not exists (
                 select from market.series_changes c
                  where c.exchange = n.exchange and c.symbol = n.symbol
                    and c.change_date > n.before_date and c.change_date <= n.trade_date)
               and not exists (
                 select from market.corporate_actions a
                  where a.exchange = n.exchange
                    and (a.scrip_code = n.exchange_instrument_id or a.isin = n.isin or a.symbol = n.symbol)
                    and (a.prov_xdate > n.before_date and a.prov_xdate <= n.trade_date
                      or a.bc_rd_from > n.before_date and a.bc_rd_from <= n.trade_date + ${RECORD_DATE_DAYS}))
          ) as lines
      ) as compared_lines`,
};

export const priceChecks: readonly Check[] = [priceOrder, pricePositive, previousClose];
