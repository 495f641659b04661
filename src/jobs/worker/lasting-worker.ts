import { setTimeout as sleep } from 'node:timers/promises';
import type { JobWorker } from './queue.ts';

/** Pause before a worker that could not connect is made anew. */
const AGAIN_MS = 1_000;

/** A worker of BullMQ that was made with `autorun: false`, as far as it matters here. */
interface Startable extends JobWorker {
  waitUntilReady(): Promise<unknown>;
  run(): Promise<unknown>;
  emit(event: 'error', error: Error): boolean;
}

/**
 * A worker that comes to work however often its first connection fails. On Postgres BullMQ remembers
 * a first connection that failed: a worker that ran would meet that same error at once, for ever, in a
 * loop that leaves nothing else of its process any time.
 */
export function lastingWorker(make: () => Startable): JobWorker {
  let worker = make();
  const closing = new AbortController();

  async function start(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await worker.waitUntilReady();
        if (!closing.signal.aborted) await worker.run();
        return;
      } catch (error) {
        worker.emit('error', error as Error);
      }
      await sleep(AGAIN_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      if (closing.signal.aborted) return;
      // Not waited for: it has nothing in hand.
      void worker.close(true).catch(() => undefined);
      worker = make();
    }
  }

  void start();
  return {
    close(force) {
      closing.abort();
      return worker.close(force);
    },
  };
}
