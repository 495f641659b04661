import { PipelineError } from '../../core/errors.ts';

/** A file that cannot be taken in as a whole: nothing of it is stored, and the next one is read. */
export function badFile(problem: string, options: { readonly cause?: unknown } = {}): PipelineError {
  return new PipelineError(problem, { kind: 'unreadable', retryable: false, ...options });
}
