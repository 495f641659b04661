import { setTimeout as sleep } from 'node:timers/promises';
import { PipelineError } from '../../core/errors.ts';
import { databaseError } from './errors.ts';

/** How long to put up with a server that is away, and who hears of it. */
export interface Patience {
  /** From the first failure on; 0: not at all. */
  readonly patienceMs: number;
  /** Ends the waiting at once. */
  readonly signal?: AbortSignal | undefined;
  /** Told once for each time the server is away. */
  readonly tell: (sentence: string) => void;
}

/** For commands that only look, where somebody waits for the answer, and callers that try again themselves. */
export const NO_PATIENCE: Patience = { patienceMs: 0, tell: () => undefined };

/** A restart takes a second or two; asking more often only fills its log. */
const AGAIN_MS = 500;

/**
 * Does a step that may be done again from its start, again for as long as Postgres is away.
 *
 * @throws PipelineError `database` when it stays away, `aborted` on the signal; any other error of
 *   the step as it is, at once.
 */
export async function patiently<T>(patience: Patience, step: () => Promise<T>): Promise<T> {
  const { patienceMs, tell } = patience;
  let awaySince: number | undefined;
  for (;;) {
    const begun = Date.now();
    try {
      return await step();
    } catch (error) {
      const problem = databaseError(error);
      if (problem.kind !== 'database' || !problem.retryable) throw error;
      const now = Date.now();
      // A step that went well for so long has met another failure, not the same one.
      if (awaySince === undefined || now - begun > patienceMs) {
        awaySince = now;
        if (patienceMs > 0) tell(`${problem.message}: trying again for up to ${inSeconds(patienceMs)}`);
      }
      if (now - awaySince >= patienceMs) throw problem;
      await pauseFor(patience);
    }
  }
}

/** The pause before another try. @throws PipelineError `aborted` on the signal. */
export async function pauseFor({ signal }: Pick<Patience, 'signal'>): Promise<void> {
  await sleep(AGAIN_MS, undefined, { signal }).catch(() => {
    throw new PipelineError('stopped by a signal', { kind: 'aborted', retryable: true });
  });
}

/** `60 s`. */
export function inSeconds(milliseconds: number): string {
  return `${Math.ceil(milliseconds / 1000)} s`;
}
