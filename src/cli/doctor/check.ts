import { messageOf } from '../../core/errors.ts';
import { within } from '../../core/waits.ts';

/** `skipped`: could not be checked, or does not apply; `found` says why. */
export type CheckState = 'ok' | 'warning' | 'failed' | 'skipped';

/** The outcome of one check. */
export interface Check {
  readonly name: string;
  readonly state: CheckState;
  /** What was found, in a sentence without secrets. */
  readonly found: string;
  /** What to do about it; null if nothing needs to be done. */
  readonly remedy: string | null;
}

/** The result of a check that found nothing wrong. */
export const ok = (name: string, found: string): Check => ({ name, state: 'ok', found, remedy: null });

/** The result of a check that found something that works now, but may stop working. */
export const warning = (name: string, found: string, remedy: string): Check => ({
  name,
  state: 'warning',
  found,
  remedy,
});

/** The result of a check that found a reason why the pipeline cannot work. */
export const failed = (name: string, found: string, remedy: string): Check => ({
  name,
  state: 'failed',
  found,
  remedy,
});

/** The result of a check that was not made. */
export const skipped = (name: string, why: string): Check => ({
  name,
  state: 'skipped',
  found: why,
  remedy: null,
});

/**
 * Runs checks with a time limit. Anything thrown becomes a failed check of this name, so that no check hides another.
 *
 * @param remedy for checks that could not be made.
 */
export async function bounded(
  name: string,
  milliseconds: number,
  remedy: string,
  work: () => Promise<readonly Check[]>,
): Promise<readonly Check[]> {
  try {
    return await within(work(), milliseconds);
  } catch (error) {
    return [failed(name, messageOf(error) || 'no answer', remedy)];
  }
}
