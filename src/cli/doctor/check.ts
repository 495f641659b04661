import { messageOf } from '../../core/errors.ts';
import { within } from '../../core/waits.ts';

/** `skipped`: could not be checked, or does not apply; `found` says why. */
type CheckState = 'ok' | 'warning' | 'failed' | 'skipped';

/** The outcome of one check. */
export interface Check {
  readonly name: string;
  readonly state: CheckState;
  /** What was found, in a sentence without secrets. */
  readonly found: string;
  /** What to do about it; null if nothing needs to be done. */
  readonly remedy: string | null;
}

const found =
  (state: 'ok' | 'skipped') =>
  (name: string, text: string): Check => ({ name, state, found: text, remedy: null });

const problem =
  (state: 'warning' | 'failed') =>
  (name: string, text: string, remedy: string): Check => ({ name, state, found: text, remedy });

/** The result of a check that found nothing wrong. */
export const ok = found('ok');

/** The result of a check that was not made. */
export const skipped = found('skipped');

/** The result of a check that found something that works now, but may stop working. */
export const warning = problem('warning');

/** The result of a check that found a reason why the pipeline cannot work. */
export const failed = problem('failed');

/**
 * By how much our clock is certainly ahead of another (negative: behind), which was read at some time during a call; 0 if
 * the time that the call took may be all of the difference. Unit: milliseconds.
 */
export function certainLead(
  call: { readonly sentAt: number; readonly receivedAt: number },
  theirs: number,
): number {
  const half = (call.receivedAt - call.sentAt) / 2;
  const lead = call.sentAt + half - theirs;
  return Math.sign(lead) * Math.max(0, Math.abs(lead) - half);
}

/** Is a version lower than another? */
export function isBelow(version: string, other: string): boolean {
  const [own, least] = [version, other].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = least.findIndex((part, place) => part !== (own[place] ?? 0));
  return at !== -1 && (own[at] ?? 0) < (least[at] ?? 0);
}

/**
 * Runs checks with a time limit. Anything thrown becomes a failed check of this name, so that no check hides another.
 *
 * @param remedy for checks that could not be made.
 */
export async function bounded(
  name: string,
  milliseconds: number,
  remedy: string,
  work: () => Promise<Check | readonly Check[]>,
): Promise<readonly Check[]> {
  try {
    return [await within(work(), milliseconds)].flat();
  } catch (error) {
    return [failed(name, messageOf(error) || 'no answer', remedy)];
  }
}
