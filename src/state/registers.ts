// What is known of an entry (an operation, an exchange, a day, an instrument and a variant) is a few registers. Each
// response, failed call and holiday moves them forward, in whatever order it is stored: the position of a response in
// the order of responses decides, not when it is loaded. `etl.coverage` has a column for each register, which
// `writeCoverage` moves (coverage.ts), and the state follows from them (STATE_OF of its table).

export const COVERAGE_STATES = ['loaded', 'empty', 'holiday', 'not_published', 'blocked', 'failed'] as const;
export type CoverageState = (typeof COVERAGE_STATES)[number];

/** What is known of one trading day, and, where those are requested, of one instrument and one variant. */
export interface CoverageEntry {
  readonly day: string;
  /** '' where the whole exchange was requested. */
  readonly instrument: string;
  readonly variant: string;
  readonly state: CoverageState;
  readonly records: number;
  readonly diagnostic?: string;
}

/**
 * How the diagnostic of an entry begins that the key may not use; the word operation or exchange follows. Such an entry
 * is `blocked`, and not missing: `etl.refused_scope` of the database recognizes it.
 */
export const NOT_ALLOWED = 'the key may not use this';

/** Why a day is a gap although its newest response had no record of it and nothing was wrong with it. */
export const WITHHELD = 'the response has no rows of this day, but some are stored';
