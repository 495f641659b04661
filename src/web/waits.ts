import { setTimeout as sleep } from 'node:timers/promises';

/** A check that takes longer counts as failed. */
const CHECK_WITHIN_MS = 2_000;

/** Lets calls that come while the work is under way share its result: they must not use up the connections. */
export function oneAtATime<T>(work: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null;
  return () => {
    current ??= work().finally(() => {
      current = null;
    });
    return current;
  };
}

/** Waits for a check. @throws where it takes longer than `withinMs`. */
export async function within<T>(work: Promise<T>, withinMs = CHECK_WITHIN_MS): Promise<T> {
  const done = new AbortController();
  const late = sleep(withinMs, undefined, { signal: done.signal, ref: false }).then(() => {
    throw new Error(`no answer within ${withinMs} ms`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}
