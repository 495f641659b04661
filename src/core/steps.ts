/** The steps of a window, of which the log line at its end says how long each took. */
type StepName = 'claim' | 'fetch' | 'read' | 'load';

/** How long each step took, in milliseconds. */
export type StepTimes = Partial<Record<StepName, number>>;

/** Runs a step and adds the milliseconds it took to `times`, also when it fails. */
export async function timeStep<T>(
  times: StepTimes,
  name: StepName,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  const began = performance.now();
  try {
    return await work();
  } finally {
    times[name] = Math.round((times[name] ?? 0) + performance.now() - began);
  }
}
