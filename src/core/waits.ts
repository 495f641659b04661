import { setTimeout as sleep } from 'node:timers/promises';

/** A check that takes longer has failed. */
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
  if (await endsWithin(work, withinMs)) return work;
  throw new Error(`no response within ${withinMs / 1000} s`);
}

/** @returns false if `work` takes longer; the work itself goes on. @throws what `work` throws. */
export async function endsWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const done = new AbortController();
  const late = sleep(milliseconds, false, { signal: done.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}

/**
 * How long closing the connections to a server may take. A server that is silent never confirms the end, and the
 * process exits afterwards anyway.
 */
export const DISCONNECT_WITHIN_MS = 500;

/** Calls `work` for every item, `width` at a time, until all are done or `signal` aborts. @throws its first error. */
export async function inParallel<Item>(
  items: readonly Item[],
  { width, signal }: { readonly width: number; readonly signal?: AbortSignal | undefined },
  work: (item: Item, at: number) => Promise<void>,
): Promise<void> {
  // All workers take from the same one.
  const queue = items.entries();
  let broken = false;
  const workOn = async () => {
    for (const [at, item] of queue) {
      if (signal?.aborted === true || broken) return;
      try {
        await work(item, at);
      } catch (error) {
        broken = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: width }, workOn));
  const failed = workers.find((worker) => worker.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
