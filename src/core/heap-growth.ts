import { setFlagsFromString } from 'node:v8';

/**
 * Limits how far the heap of this process may grow beyond its size after the last full garbage collection. V8 counts
 * bodies and other buffers as growth, and reads this setting at each full collection, so it can be set in a running
 * process.
 *
 * @param percent the less, the more of the time is taken by collections.
 */
export function limitHeapGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}
