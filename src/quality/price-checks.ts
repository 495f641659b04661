import { type Check, IS_T0, LINE_NAME, PRECEDING_DAYS } from './quality-check.ts';

/** Old files print 0 for a missing price, which is no finding. */
const outside = (price: string) =>
  `(line.${price} > 0 and not line.${price} between line.low_price and line.high_price)`;

const priceOrder: Check = {
  name: 'price_order',
  severity: 'error',
  operation: 'GetBhavCopyCM',
  rule: "Open, close and last price lie between the day's low and high (the close of T+0 lines is that of the security's own line, and may not).",
  dated: true,
  sql: `
    select line.exchange, line.trade_date as date, ${LINE_NAME} as instrument,
           format('from %s to %s', line.low_price, line.high_price) as expected,
           concat_ws(', ',
             case when line.low_price > line.high_price then 'low above high' end,
             case when ${outside('open_price')} then 'open ' || line.open_price end,
             case when ${outside('close_price')} and not ${IS_T0} then 'close ' || line.close_price end,
             case when ${outside('last_price')} then 'last ' || line.last_price end) as found
      from market.bhavcopy_cm line
     where line.trade_date between $1 and $2
       and (line.low_price > line.high_price or ${outside('open_price')} or ${outside('last_price')}
            or (${outside('close_price')} and not ${IS_T0}))`,
};

const PRICES = 'open high low close last previous_close settlement'.split(' ').map((name) => `${name}_price`);

const pricePositive: Check = {
  name: 'price_positive',
  severity: 'error',
  operation: 'GetBhavCopyCM',
  rule: 'No price is below 0, and the close is above it (0 in another price means that there is none).',
  dated: true,
  sql: `
    select line.exchange, line.trade_date as date, ${LINE_NAME} as instrument,
           'no price below 0, a close above 0' as expected,
           concat_ws(', ', case when line.close_price = 0 then 'close 0' end, ${PRICES.map(
             (price) =>
               `case when line.${price} < 0 then '${price.replace('_price', '').replace('_', ' ')} ' || line.${price} end`,
           ).join(', ')}) as found
      from market.bhavcopy_cm line
     where line.trade_date between $1 and $2 and (line.close_price = 0 or ${PRICES.map((price) => `line.${price} < 0`).join(' or ')})`,
};

/** The closes of each line with its previous close. `stretch` numbers unbroken sequences of loaded trading days. */
const NEIGHBOURS = `
  select loaded.*, lag(loaded.close_price) over line as before_close, lag(loaded.trade_date) over line as before_date,
         lag(loaded.stretch) over line as before_stretch
    from (
      select price.exchange, price.symbol, price.series, price.trade_date, price.isin, price.exchange_instrument_id, price.close_price,
             price.previous_close_price, day.stretch
        from market.bhavcopy_cm price
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
        ) as day on day.exchange = price.exchange and day.day = price.trade_date and day.loaded
       where price.trade_date between $1::date - ${PRECEDING_DAYS} and $2::date) as loaded
  window line as (partition by loaded.exchange, loaded.symbol, loaded.series order by loaded.trade_date)`;

/** The condition that the security had that close under another series or name since the line's last trading day. */
const closedElsewhere = (sameSecurity: string) => `
  exists (
    select from market.bhavcopy_cm other
     where other.exchange = line.exchange and ${sameSecurity} and other.close_price = line.previous_close_price
       and (other.symbol, other.series) <> (line.symbol, line.series)
       and other.trade_date between $1::date - ${PRECEDING_DAYS} and $2::date
       and other.trade_date >= line.before_date and other.trade_date < line.trade_date)`;

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
            select line.*, ${LINE_NAME} as instrument, count(*) over (partition by line.exchange, line.trade_date) as wrong,
                   format('%s (close of %s)', line.before_close, line.before_date) as expected
              from (
                select *, count(*) over (partition by exchange, trade_date) as compared
                  from (${NEIGHBOURS}) as compared_line
                 where trade_date between $1 and $2 and previous_close_price > 0 and before_stretch = stretch
              ) as line
             where line.previous_close_price <> line.before_close
               and not ${closedElsewhere('other.isin = line.isin')}
               and not ${closedElsewhere('other.exchange_instrument_id = line.exchange_instrument_id')}
               and not ${closedElsewhere('other.symbol = line.symbol and (other.isin is null or line.isin is null)')}
               and not exists (
                 select from market.series_changes change
                  where change.exchange = line.exchange and change.symbol = line.symbol
                    and change.change_date > line.before_date and change.change_date <= line.trade_date)
               and not exists (
                 select from market.corporate_actions action
                  where action.exchange = line.exchange
                    and (action.scrip_code = line.exchange_instrument_id or action.isin = line.isin or action.symbol = line.symbol)
                    and (action.prov_xdate > line.before_date and action.prov_xdate <= line.trade_date
                      or action.bc_rd_from > line.before_date and action.bc_rd_from <= line.trade_date + ${RECORD_DATE_DAYS}))
          ) as wrong_line
      ) as judged`,
};

export const priceChecks: readonly Check[] = [priceOrder, pricePositive, previousClose];
