import type { Check } from './quality-check.ts';

/** After so many trading days without a row, a symbol may have been given to another company. */
const LONG_HOLE_DAYS = 250;

/** Trading days with stored prices of the exchange, at most LONG_HOLE_DAYS, between two rows. */
const HOLE_DAYS = `(
  select count(*) from (
    select from generate_series(earlier.trade_date + 1, line.trade_date - 1, interval '1 day') as span(day)
     where exists (select from market.bhavcopy_cm price where price.exchange = line.exchange and price.trade_date = span.day::date)
     limit ${LONG_HOLE_DAYS}) as days)`;

const symbolReused: Check = {
  name: 'symbol_reused',
  severity: 'warning',
  operation: 'GetBhavCopyCM',
  rule: `A symbol without ISIN has no hole of ${LONG_HOLE_DAYS} trading days or more: another company may have been given it, and would be taken for the same.`,
  dated: true,
  sql: `
    select distinct line.exchange, line.trade_date as date, line.symbol as instrument,
           format('a row since %s, an ISIN, or a change of the symbol in a list', earlier.trade_date) as expected,
           'no ISIN before and after ${LONG_HOLE_DAYS} trading days or more without a row' as found
      from market.bhavcopy_cm line
     cross join lateral (
       select earlier.trade_date, earlier.isin from market.bhavcopy_cm earlier
        where earlier.exchange = line.exchange and earlier.symbol = line.symbol and earlier.trade_date < line.trade_date
        order by earlier.trade_date desc limit 1) as earlier
     -- The number of days is counted only where it may be as great.
     where line.trade_date between $1 and $2 and line.exchange <> 'BSE' and line.isin is null and earlier.isin is null
       and line.trade_date - earlier.trade_date > ${LONG_HOLE_DAYS} and ${HOLE_DAYS} = ${LONG_HOLE_DAYS}
       and not exists (
         select from market.symbol_changes change
          where change.exchange = line.exchange and line.symbol in (change.old_symbol, change.new_symbol)
            and change.changed_on > earlier.trade_date and change.changed_on <= line.trade_date)`,
};

const symbolChangesMissing: Check = {
  name: 'symbol_changes_missing',
  severity: 'info',
  operation: 'SymbolChanges',
  rule: 'Where symbols without ISIN are stored, a list of changed symbols is as well: without it, a company has another id after each change of its symbol.',
  dated: false,
  sql: `
    select instrument.exchange, min(instrument.first_seen) as date, '' as instrument,
           'a list of changed symbols: else a company has another id after each change' as expected,
           format('none, and %s symbols without ISIN until %s', count(distinct instrument.symbol), max(instrument.last_seen)) as found
      from market.instruments instrument
     where instrument.isin is null and instrument.symbol is not null and instrument.exchange <> 'BSE'
       and not exists (select from market.symbol_changes change where change.exchange = instrument.exchange)
     group by instrument.exchange`,
};

/** Checks of symbols that no ISIN proves; BSE's securities are known by their scrip codes. */
export const symbolChecks = [symbolReused, symbolChangesMissing];
