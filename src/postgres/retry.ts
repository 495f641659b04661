import { setTimeout as sleep } from 'node:timers/promises';
import { PipelineError } from '../core/errors.ts';
import { databaseError } from './database-errors.ts';

/** How long to retry while Postgres cannot be reached, and how that is reported. */
export interface RetryOptions {
  /** Counted from the first failure of an outage. */
  readonly forMs: number;
  /** Ends the waiting at once. */
  readonly signal?: AbortSignal | undefined;
  /** Called at most once in `forMs`, however many statements an outage hits. */
  readonly onRetry: (sentence: string) => void;
}

/** Runs a step, and repeats it from its start while Postgres is unreachable or cannot store. */
export type Retry = <T>(step: () => Promise<T>) => Promise<T>;

/** A restart takes a second or two; more frequent attempts would only fill the server's log. */
const PAUSE_MS = 500;

/** A try that cannot reach Postgres fails sooner, because the pool gives up connecting after 15 s. */
const LONGEST_TRY_MS = 20_000;

/**
 * Makes the function that repeats steps of a database client.
 *
 * @throws PipelineError `database_unreachable` or `database_cannot_store` if that does not pass, `aborted` on the
 *   signal; any other error of the step is passed on at once.
 */
export function createRetry(options: RetryOptions): Retry {
  const { forMs, signal, onRetry } = options;
  let reportedAt = Number.NEGATIVE_INFINITY;

  function report(problem: PipelineError, now: number): void {
    if (now - reportedAt <= forMs) return;
    reportedAt = now;
    onRetry(`${problem.message}: trying again for up to ${inSeconds(forMs)}`);
  }

  return async (step) => {
    let failingSince: number | undefined;
    for (;;) {
      const started = Date.now();
      try {
        return await step();
      } catch (error) {
        const problem = databaseError(error);
        if (!mayPass(problem)) throw error;
        const now = Date.now();
        // A step that ran this long had reached Postgres, so this is a new outage.
        if (failingSince === undefined || now - started > LONGEST_TRY_MS) failingSince = now;
        if (now - failingSince >= forMs) throw problem;
        report(problem, now);
        await pauseBeforeRetry(signal);
      }
    }
  };
}

/** Waits until the next try. @throws PipelineError `aborted` on the signal. */
export async function pauseBeforeRetry(signal?: AbortSignal): Promise<void> {
  await sleep(PAUSE_MS, undefined, { signal }).catch(() => {
    throw new PipelineError('stopped by a signal', { kind: 'aborted' });
  });
}

/** `60 s`. */
export function inSeconds(milliseconds: number): string {
  return `${Math.ceil(milliseconds / 1000)} s`;
}

/** True if the same statement may succeed a moment later. */
function mayPass({ kind }: PipelineError): boolean {
  return kind === 'database_unreachable' || kind === 'database_cannot_store';
}
