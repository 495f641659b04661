import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** True in the slow layer. */
    isSlow: boolean;
  }
}

/** Whether this is the slow layer. A long test beside shorter ones is for it alone: `test.runIf(isSlowLayer)(…)`. */
export const isSlowLayer = inject('isSlow') === true;
