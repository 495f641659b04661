/** Why a session is missing, as text; the comment of the view `etl.completeness` explains each. */
export const GAP_REASONS = {
  never_asked: 'never asked',
  failed: 'failed',
  blocked: 'blocked',
  beyond_history: 'beyond the history of the source',
  not_published: 'not published yet',
  empty: 'the source listed nothing',
  partial: 'only some instruments were asked for',
} as const;

export type GapReason = keyof typeof GAP_REASONS;
