import type { Check } from './quality-check.ts';

/** After so many trading days without a row, a symbol may have been given to another company. */
const LONG_HOLE_DAYS = 250;

/** Trading days with stored prices of the exchange, at most LONG_HOLE_DAYS, between two rows. */
const HOLE_DAYS = `(
  select count(*) from (
    select from generate_series(p.trade_date + 1, b.trade_date - 1, interval '1 day') as d(day)
     where exists (select from market.bhavcopy_cm x where x.exchange = b.exchange and x.trade_date = d.day::date)
     limit ${LONG_HOLE_DAYS}) as days)`;

const symbolReused: Check = {
  name: 'symbol_reused',
  severity: 'warning',
  operation: 'GetBhavCopyCM',
  rule: `A symbol without ISIN has no hole of ${LONG_HOLE_DAYS} trading days or more: another company may have been given it, and would be taken for the same.`,
  dated: true,
  sql: `
    select distinct b.exchange, b.trade_date as date, b.symbol as instrument,
           format('a row since %s, an ISIN, or a change of the symbol in a list', p.trade_date) as expected,
           'no ISIN before and after ${LONG_HOLE_DAYS} trading days or more without a row' as found
      from market.bhavcopy_cm b
     cross join lateral (
       select p.trade_date, p.isin from market.bhavcopy_cm p
        where p.exchange = b.exchange and p.symbol = b.symbol and p.trade_date < b.trade_date
        order by p.trade_date desc limit 1) as p
     -- The number of days is counted only where it may be as great.
     where b.trade_date between $1 and $2 and b.exchange <> 'BSE' and b.isin is null and p.isin is null
       and b.trade_date - p.trade_date > ${LONG_HOLE_DAYS} and ${HOLE_DAYS} = ${LONG_HOLE_DAYS}
       and not exists (
         select from market.symbol_changes c
          where c.exchange = b.exchange and b.symbol in (c.old_symbol, c.new_symbol)
            and c.changed_on > p.trade_date and c.changed_on <= b.trade_date)`,
};

const symbolChangesMissing: Check = {
  name: 'symbol_changes_missing',
  severity: 'info',
  operation: 'SymbolChanges',
  rule: 'Where symbols without ISIN are stored, a list of changed symbols is as well: without it, a company has another id after each change of its symbol.',
  dated: false,
  sql: `
    select i.exchange, min(i.first_seen) as date, '' as instrument,
           'a list of changed symbols: else a company has another id after each change' as expected,
           format('none, and %s symbols without ISIN until %s', count(distinct i.symbol), max(i.last_seen)) as found
      from market.instruments i
     where i.isin is null and i.symbol is not null and i.exchange <> 'BSE'
       and not exists (select from market.symbol_changes c where c.exchange = i.exchange)
     group by i.exchange`,
};

/** Checks of symbols that no ISIN proves; BSE's securities are known by their scrip codes. */
export const symbolChecks = [symbolReused, symbolChangesMissing];
