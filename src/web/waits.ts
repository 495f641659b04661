import { setTimeout as sleep } from 'node:timers/promises';

/** A check that takes longer counts as failed. */
const CHECK_WITHIN_MS = 2_000;

/** Makes calls share the result of work that is already in progress, so that they do not use up the connections. */
export function oneAtATime<T>(work: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null;
  return () => {
    current ??= work().finally(() => {
      current = null;
    });
    return current;
  };
}

/** Waits for work, for at most `withinMs`. @throws Error if it takes longer; the work itself goes on. */
export async function within<T>(work: Promise<T>, withinMs = CHECK_WITHIN_MS): Promise<T> {
  const done = new AbortController();
  const late = sleep(withinMs, undefined, { signal: done.signal }).then(() => {
    throw new Error(`no answer within ${withinMs / 1000} s`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}
