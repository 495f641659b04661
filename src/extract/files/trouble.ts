import { PipelineError } from '../../core/errors.ts';

/** Bytes of a file that is no text at all may be quoted in a problem; Postgres keeps no NUL. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]+/gu;

/** A file that cannot be taken in as a whole: nothing of it is stored, and the next one is read. */
export function badFile(problem: string, options: { readonly cause?: unknown } = {}): PipelineError {
  const printable = problem.replace(UNPRINTABLE, ' ');
  return new PipelineError(printable, { kind: 'unreadable', retryable: false, ...options });
}
