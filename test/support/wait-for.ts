import { setTimeout as pause } from 'node:timers/promises';

/**
 * How many times as long as stated everything is waited for. More in the slow layer, where what runs beside a test may
 * keep the machine busy for long: a limit says when to stop waiting, not how fast something has to be.
 */
export const patience = { times: 1 };

export interface WaitOptions {
  /** Give up after this long; default 20 s. */
  readonly timeoutMs?: number;
  /** Try again after this long; default 25 ms. */
  readonly everyMs?: number;
  /** What is waited for, for the error; default: the condition's source. */
  readonly what?: string;
}

/**
 * Calls the condition until its result is neither false, null nor undefined, and returns that.
 *
 * @throws Error that names what was waited for, and the last result or error, when time is up.
 */
export async function waitFor<Result>(
  condition: () => Result | Promise<Result>,
  options: WaitOptions = {},
): Promise<Exclude<Result, false | null | undefined>> {
  const { everyMs = 25, what = condition.toString() } = options;
  const timeoutMs = (options.timeoutMs ?? 20_000) * patience.times;
  const deadline = Date.now() + timeoutMs;
  let last = '';
  do {
    try {
      const result = await condition();
      if (result !== false && result !== null && result !== undefined) {
        return result as Exclude<Result, false | null | undefined>;
      }
      last = `the last result was ${result}`;
    } catch (error) {
      last = `the last try failed: ${error instanceof Error ? error.message : String(error)}`;
    }
    await pause(everyMs);
  } while (Date.now() < deadline);
  throw new Error(`waited ${timeoutMs} ms in vain for ${what}; ${last}`);
}
