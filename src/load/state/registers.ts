// What is known of a question (an operation, an exchange, a day, an instrument and a variant) is a few registers. Each
// answer, failed call and holiday moves them forward, in whatever order it is stored: the place of an answer in the order
// of answers decides, not when it is loaded. `etl.coverage` has a column for each register, which `writeCoverage` moves
// (coverage.ts), and the state follows from them (STATE_OF of its table).

export const COVERAGE_STATES = ['loaded', 'empty', 'holiday', 'not_published', 'blocked', 'failed'] as const;
export type CoverageState = (typeof COVERAGE_STATES)[number];

/** What is known of one session day, and, where those are asked for, of one instrument and one question. */
export interface CoverageEntry {
  readonly day: string;
  /** '' where the whole exchange was asked. */
  readonly instrument: string;
  readonly variant: string;
  readonly state: CoverageState;
  readonly records: number;
  readonly diagnostic?: string;
}

/** Why a day is a gap although its newest answer had no record of it and nothing was wrong with it. */
export const HELD_BACK = 'the answer has no rows of this day, but some are stored';
