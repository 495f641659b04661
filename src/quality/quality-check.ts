import type { Severity } from '../state/findings.ts';

/** A rule that the data must follow, with a query for whatever breaks it. */
export interface Check {
  readonly name: string;
  /** Unless EOD_FINDING_SEVERITY says otherwise. */
  readonly severity: Severity;
  /** The operation whose data the findings are about. */
  readonly operation: string;
  /** The rule in one sentence, for users. */
  readonly rule: string;
  /**
   * True if findings carry a day of the checked range. If not, all rows are checked whatever the range is (a
   * classification is valid for years), and each finding has a day of its own.
   */
  readonly dated: boolean;
  /**
   * A select of exchange, date, instrument, expected, found: one row per finding. `$1` and `$2`
   * are the first and last day, and it may use two tables of exchange and day: `sessions`, those of the
   * calendar, and `complete`, those whose bhav copy was loaded for the whole exchange. Sums and
   * neighbours mean nothing where only some instruments were requested.
   */
  readonly sql: string;
}

/** How many days before the first checked one are read, for earlier trading days to compare with. */
export const PRECEDING_DAYS = 30;

/** The name of a row of the bhav copy in findings. */
export const lineName = (row: string) => `${row}.symbol || ' ' || ${row}.series`;

/** True for a line for same-day settlement. It has few trades, and the close of the security's own line. */
export const isT0 = (row: string) => `(${row}.series = 'T0' or ${row}.symbol like '%#')`;
