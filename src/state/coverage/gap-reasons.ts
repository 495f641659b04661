/** Why a trading day is missing, as text; the comment of the view `etl.completeness` explains each. */
export const GAP_REASONS = {
  not_requested: 'not requested yet',
  failed: 'failed',
  count_mismatch: 'the response states more records than it has',
  blocked: 'blocked',
  beyond_history: 'too old for the source',
  not_imported: 'no file of it was imported',
  not_published: 'not published yet',
  empty: 'the source listed nothing',
  partial: 'only a part is stored',
} as const;

export type GapReason = keyof typeof GAP_REASONS;

/** Why a trading day is missing, in words: `only a part is stored: 22 of 200 companies`. */
export function gapText({
  reason,
  detail,
}: {
  readonly reason: GapReason;
  readonly detail: string | null;
}): string {
  // What is known of a day without coverage says more than that it is not covered.
  if (reason === 'not_requested' && detail !== null) return detail;
  return detail === null ? GAP_REASONS[reason] : `${GAP_REASONS[reason]}: ${detail}`;
}
