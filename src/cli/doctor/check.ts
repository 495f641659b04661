import { messageOf } from '../../core/errors.ts';
import { within } from '../../core/waits.ts';

/** The outcome of a check. */
export interface Outcome {
  /** If it is not that of the check. */
  readonly name?: string;
  /** `skipped`: could not be checked, or does not apply; `found` says why. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What was found, in a sentence without secrets. */
  readonly found: string;
  /** What to do about it; null if nothing needs to be done. */
  readonly remedy: string | null;
}

/** A check that was made. */
export type Check = Outcome & { readonly name: string };

/** Nothing is wrong. */
export const ok = (fact: string): Outcome => ({ state: 'ok', found: fact, remedy: null });

/** The check was not made. */
export const skipped = (fact: string): Outcome => ({ state: 'skipped', found: fact, remedy: null });

/** Something works now, but may stop working. */
export const warning = (fact: string, remedy: string): Outcome => ({ state: 'warning', found: fact, remedy });

/** There is a reason why the pipeline cannot work. */
export const failed = (fact: string, remedy: string): Outcome => ({ state: 'failed', found: fact, remedy });

/** The private Postgres may have to be started. */
const CHECK_MS = 60_000;

/**
 * Makes a check within a time limit. What it throws is its outcome, so that no check hides another. An outcome without a
 * name has that of the check.
 *
 * @param remedy if it cannot be made.
 */
export async function makeCheck(
  name: string,
  remedy: string,
  work: () => Promise<Outcome | readonly Outcome[]> | Outcome | readonly Outcome[],
): Promise<readonly Check[]> {
  try {
    const outcomes = await within(Promise.resolve(work()), CHECK_MS);
    return [outcomes].flat().map((outcome) => ({ name, ...outcome }));
  } catch (error) {
    return [{ name, ...failed(messageOf(error) || 'no response', remedy) }];
  }
}
