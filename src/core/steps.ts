import { tracingChannel } from 'node:diagnostics_channel';

/**
 * What is done for a window: `window` from its claim to its end, and within it `claim`, `fetch`, `read` and `load`;
 * `plan`: the night of a schedule; `enqueue`: the jobs of a run.
 */
export type StepName = 'plan' | 'enqueue' | 'window' | 'claim' | 'fetch' | 'read' | 'load';

export type StepFacts = Record<string, string | number | boolean>;

/** A step, as it is told to those who trace. */
export interface Step {
  readonly name: StepName;
  /** What is known of it; more may be known at its end than at its beginning. */
  readonly facts: StepFacts;
  /** What it threw. */
  readonly error?: unknown;
}

const NAME = 'eod:step';

/** Where steps are told: whoever traces subscribes, and binds what belongs to a step to what runs within it. */
export const stepChannel = tracingChannel<Step>(NAME);

/**
 * Does a step of the work, and tells those who trace when it begins and ends. Without them it costs nothing.
 *
 * @param facts may be added to while it runs.
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

/** Milliseconds that steps took. */
export type StepTimes = Partial<Record<StepName, number>>;

/** Does a step and adds to `times` how long it took, also where it fails. Unit: milliseconds. */
export async function timeStep<T>(
  times: StepTimes,
  name: StepName,
  work: () => T | PromiseLike<T>,
  facts: StepFacts = {},
): Promise<T> {
  const began = performance.now();
  try {
    return await runStep(name, facts, work);
  } finally {
    times[name] = Math.round((times[name] ?? 0) + performance.now() - began);
  }
}
