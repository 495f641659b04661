/** Why a session is missing, as text; the comment of the view `etl.completeness` explains each. */
export const GAP_REASONS = {
  never_asked: 'never asked',
  failed: 'failed',
  count_mismatch: 'the answer states more records than it has',
  blocked: 'blocked',
  beyond_history: 'beyond the history of the source',
  not_published: 'not published yet',
  empty: 'the source listed nothing',
  partial: 'only some instruments were asked for',
} as const;

/** How the diagnostic of a day begins whose answer states more records than it has. */
export const COUNT_MISMATCH = 'count_mismatch';

export type GapReason = keyof typeof GAP_REASONS;
