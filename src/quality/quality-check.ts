import type { FindingQuery, Severity } from '../state/findings.ts';

/** A rule that the data must follow, with a query for whatever breaks it. */
export interface Check extends FindingQuery {
  /** Unless EOD_FINDING_SEVERITY says otherwise. */
  readonly severity: Severity;
  /** The rule in one sentence, for users. */
  readonly rule: string;
}

/** How many days before the first checked one are read, for earlier trading days to compare with. */
export const PRECEDING_DAYS = 30;

/** The name of a `line` of the bhav copy in findings. */
export const LINE_NAME = `line.symbol || ' ' || line.series`;

/** True for a `line` for same-day settlement. It has few trades, and the close of the security's own line. */
export const IS_T0 = `(line.series = 'T0' or line.symbol like '%#')`;
