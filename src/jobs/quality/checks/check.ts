export const SEVERITIES = ['info', 'warning', 'error'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** One rule the data must keep: a query for whatever breaks it. */
export interface Check {
  readonly name: string;
  /** Unless EOD_FINDING_SEVERITY says otherwise. */
  readonly severity: Severity;
  /** The operation whose data is doubted. */
  readonly operation: string;
  /** The rule in one sentence, for people. */
  readonly rule: string;
  /**
   * Do findings carry a day of the checked range? If not, all rows are looked at whatever the range
   * is (a classification holds for years), and each finding carries a day of its own.
   */
  readonly dated: boolean;
  /**
   * A select of exchange, date, instrument, expected, found: one row for each thing wrong. It may use
   * `$1`, `$2` (first and last day) and the common table expressions of `WITH_COMMON`.
   */
  readonly sql: string;
}

/**
 * What several checks need. $3, $4: exchange and day of the calendar's sessions.
 *
 * - `sessions`: exchange, day
 * - `complete`: exchange, day: sessions whose bhav copy was loaded for the whole exchange. Sums and
 *   neighbours mean nothing where only some instruments were asked for.
 */
export const WITH_COMMON = `
  sessions as (
    select exchange, day from unnest($3::text[], $4::date[]) as s(exchange, day)
  ), complete as (
    select exchange, day from etl.coverage
     where operation = 'GetBhavCopyCM' and instrument = '' and part = '' and state = 'loaded'
  )`;

/** So many days before the first checked one are read for what went before. */
export const LEAD_IN_DAYS = 30;

/** Half a unit of the last digit the source printed: `43.87` is right for 43.865 to 43.875. */
export const halfUnit = (column: string) => `(power(10::numeric, -scale(${column})) / 2)`;

/** A row of the bhav copy as findings name it. */
export const lineName = (row: string) => `${row}.symbol || ' ' || ${row}.series`;

/** Same-day settlement: a few trades beside the security's own line, whose close they are given. */
export const isT0 = (row: string) => `(${row}.series = 'T0' or ${row}.symbol like '%#')`;
