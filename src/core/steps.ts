import { tracingChannel } from 'node:diagnostics_channel';

/**
 * The steps that are traced. `window`: a window from its claim to its end, with `claim`, `fetch`, `read` and `load`
 * within it; `plan`: planning the nightly run of a schedule; `enqueue`: adding the jobs of a run to the queue.
 */
type StepName = 'plan' | 'enqueue' | 'window' | 'claim' | 'fetch' | 'read' | 'load';

export type StepFacts = Record<string, string | number | boolean>;

/** A step, as it is published to tracing. */
export interface Step {
  readonly name: StepName;
  /** Its attributes; some are added while it runs. */
  readonly facts: StepFacts;
  /** What it threw. */
  readonly error?: unknown;
}

/** The channel on which steps are published; tracing subscribes to it and binds its spans to the async context. */
export const stepChannel = tracingChannel<Step>('eod:step');

/**
 * Runs a step, and publishes its beginning and end to tracing. Without subscribers it costs nothing.
 *
 * @param facts attributes of the step; `work` may add to them.
 * @returns what `work` returns. @throws what it throws.
 */
export async function runStep<T>(
  name: StepName,
  facts: StepFacts,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  if (!stepChannel.start.hasSubscribers) return work();
  return stepChannel.tracePromise(async () => work(), { name, facts });
}

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
    return await runStep(name, {}, work);
  } finally {
    times[name] = Math.round((times[name] ?? 0) + performance.now() - began);
  }
}
