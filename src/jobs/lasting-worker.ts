import { setTimeout as sleep } from 'node:timers/promises';
import type { JobWorker } from './queue.ts';

/** Pause before a worker that could not connect is made anew. */
const AGAIN_MS = 1_000;

/** A worker of BullMQ, as far as it matters here. */
interface Connecting extends JobWorker {
  waitUntilReady(): Promise<unknown>;
}

/**
 * A worker that comes to work however often its first connection fails. On Postgres BullMQ remembers
 * a first connection that failed, and would say so for ever instead of trying another.
 */
export function lastingWorker(make: () => Connecting): JobWorker {
  let worker = make();
  const closing = new AbortController();

  async function untilReady(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await worker.waitUntilReady();
        return;
      } catch {
        // Said by the worker itself, to whom listens to its errors.
      }
      await sleep(AGAIN_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      if (closing.signal.aborted) return;
      // Not waited for: it has nothing in hand.
      void worker.close(true).catch(() => undefined);
      worker = make();
    }
  }

  void untilReady();
  return {
    close(force) {
      closing.abort();
      return worker.close(force);
    },
  };
}
