import type { Extracted } from '../../extract/types.ts';

/** How a window that was answered ends. */
export interface Outcome {
  readonly state: 'loaded' | 'empty' | 'failed';
  readonly error: string | null;
}

/**
 * Half a day must not look like a day: where more records than the allowed share were refused,
 * none is stored, and the window fails.
 */
export function outcomeOf({ fetched, rejects }: Extracted, allowedShare: number): Outcome {
  if (fetched === 0) return { state: 'empty', error: null };
  if (rejects.length / fetched <= allowedShare && rejects.length < fetched)
    return { state: 'loaded', error: null };
  const percent = Math.round(allowedShare * 100);
  return {
    state: 'failed',
    error: `${rejects.length} of ${fetched} records were rejected (allowed: ${percent} %, EOD_MAX_REJECT_SHARE); none was stored, and each is kept as a reject`,
  };
}
