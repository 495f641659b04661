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

/** The rows of a response of more bytes take most of the memory of a worker. */
const LARGE_RESPONSE = 16 * 1024 * 1024;

/**
 * Limits it for a worker that loads a response of so many bytes: 282 MB instead of 302 with 125 % (bench/README.md). With
 * less, a worker collects at every other window, which takes a quarter of its time; a large response is worth that.
 */
export const limitHeapGrowthFor = (bytes: number): void => limitHeapGrowth(bytes > LARGE_RESPONSE ? 15 : 110);
