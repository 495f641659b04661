import type { Severity } from '../../state/findings.ts';

/** One rule the data must keep: a query for whatever breaks it. */
export interface Check {
  readonly name: string;
  /** Unless EOD_FINDING_SEVERITY says otherwise. */
  readonly severity: Severity;
  /** The operation whose data the findings are about. */
  readonly operation: string;
  /** The rule in one sentence, for people. */
  readonly rule: string;
  /**
   * Do findings carry a day of the checked range? If not, all rows are looked at whatever the range
   * is (a classification holds for years), and each finding carries a day of its own.
   */
  readonly dated: boolean;
  /**
   * A select of exchange, date, instrument, expected, found: one row for each thing wrong. `$1` and `$2`
   * are the first and last day, and it may use two tables of exchange and day: `sessions`, those of the
   * calendar, and `complete`, those whose bhav copy was loaded for the whole exchange. Sums and
   * neighbours mean nothing where only some instruments were asked for.
   */
  readonly sql: string;
}

/** So many days before the first checked one are read for what went before. */
export const LEAD_IN_DAYS = 30;

/** Half a unit of the last digit the source printed: `43.87` is right for 43.865 to 43.875. */
export const halfUnit = (column: string) => `(power(10::numeric, -scale(${column})) / 2)`;

/** A row of the bhav copy as findings name it. */
export const lineName = (row: string) => `${row}.symbol || ' ' || ${row}.series`;

/** Same-day settlement: a few trades beside the security's own line, whose close they are given. */
export const isT0 = (row: string) => `(${row}.series = 'T0' or ${row}.symbol like '%#')`;

/**
 * Is a line of the bhav copy of the ex-date of a split, consolidation or bonus? Its previous close is printed as it was,
 * and what other data of the day is compared with is not that.
 */
export const isExDate = (row: string) => `exists (
  select from market.corporate_events e
    join market.series_aliases a on a.exchange = e.exchange and a.share_id = e.instrument_id
   where e.status = 'applied' and e.ratio_new is not null
     and e.exchange = ${row}.exchange and e.ex_date = ${row}.trade_date
     and a.symbol = ${row}.symbol and a.series = ${row}.series
     and ${row}.trade_date >= a.valid_from and ${row}.trade_date < a.valid_to)`;
