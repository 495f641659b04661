/**
 * The steps that are traced. `window`: a window from its claim to its end, with `claim`, `fetch`, `read` and `load`
 * within it; `plan`: planning the nightly run of a schedule; `enqueue`: adding the jobs of a run to the queue.
 */
type StepName = 'plan' | 'enqueue' | 'window' | 'claim' | 'fetch' | 'read' | 'load';

export type StepFacts = Record<string, string | number | boolean>;

/** A step; facts become attributes of its span, and some are added while it runs. */
interface Step {
  readonly name: StepName;
  readonly facts: StepFacts;
}

/** Runs the work of a step. @returns what the work returns. @throws what it throws. */
type StepRunner = <T>(step: Step, work: () => Promise<T>) => Promise<T>;

let runner: StepRunner = (_, work) => work();

/** Makes this process run all further steps in that way, for tracing. */
export function runStepsWith(traced: StepRunner): void {
  runner = traced;
}

/**
 * Runs a step, in a span of its own where this process is traced.
 *
 * @param facts attributes of the step; `work` may add to them.
 * @returns what `work` returns. @throws what it throws.
 */
export async function runStep<T>(
  name: StepName,
  facts: StepFacts,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  return runner({ name, facts }, async () => work());
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
