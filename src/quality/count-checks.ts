import { quote } from '../load/merge/merge-sql.ts';
import { dataSets } from '../operations/registry.ts';
import type { Check } from './quality-check.ts';

/**
 * Some files have the records of a second table as well, others of the same day do not. It has no trading days of its
 * own, so that nothing else says which of its days are missing.
 */
export const missingBesideChecks = (): Check[] =>
  dataSets.flatMap(({ name, alsoInFiles = [] }) =>
    alsoInFiles.map(({ name: table, dateColumn }) => {
      const row = (where: string) =>
        `(select 1 from market.${quote(table)} stored where stored.exchange = loaded.exchange and stored.${quote(dateColumn ?? '')} ${where} limit 1)`;
      return {
        name: `missing_${table}`,
        severity: 'warning',
        operation: name,
        rule: `Between the first and the last day of ${table}, each loaded day of ${name} has some.`,
        dated: true,
        sql: `
    select loaded.exchange, loaded.day as date, '' as instrument, 'rows of ${table}' as expected, 'no row' as found
      from etl.loaded_trading_days('${name}') as loaded
     where loaded.records > 0 and loaded.day between $1 and $2 and ${row('= loaded.day')} is null
       and ${row('< loaded.day')} = 1 and ${row('> loaded.day')} = 1`,
      };
    }),
  );

/** How many trading days a day's number of records is compared with, and the fewest that are enough. */
const TRADING_DAYS = 20;
const AT_LEAST = 5;
/** Trading days more than this many days older are not compared, because markets grow. */
const DAYS = 60;
/** How far from their median it may be, as a fraction. */
const SHARE = '0.2';

/** Data sets with about the same number of records every trading day. */
const STEADY = ['GetBhavCopyCM', 'GetTop5GainersLosers', 'GetTotalTradeHighlights'];

const rowCount = (operation: string): Check => ({
  name:
    operation === 'GetBhavCopyCM' ? 'row_count' : `row_count_${operation.slice('Get'.length).toLowerCase()}`,
  severity: 'warning',
  operation,
  rule: `${operation} brings about as many records as the ${TRADING_DAYS} trading days before it (their median, ${Number(SHARE) * 100} % more or less).`,
  dated: true,
  sql: `
    select loaded.exchange, loaded.day as date, '' as instrument,
           format('about %s (median of %s trading days)', before.median, before.sessions) as expected,
           loaded.records::text as found
      from etl.loaded_trading_days('${operation}') as loaded
      cross join lateral (
        select percentile_cont(0.5) within group (order by records) as median, count(*) as sessions
          from (
            select records from etl.loaded_trading_days('${operation}') as earlier_day
             where earlier_day.exchange = loaded.exchange and earlier_day.day < loaded.day and earlier_day.day >= loaded.day - ${DAYS}
             order by earlier_day.day desc limit ${TRADING_DAYS}) as earlier) as before
     where loaded.day between $1 and $2
       and before.sessions >= ${AT_LEAST} and abs(loaded.records - before.median) > before.median * ${SHARE}`,
});

export const rowCountChecks: readonly Check[] = STEADY.map(rowCount);
