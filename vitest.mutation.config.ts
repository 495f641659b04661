import { defineConfig } from 'vitest/config';

/** The tests of one module, named by `scripts/mutation.mjs`; Stryker runs them against each mutant. */
export default defineConfig({
  test: { include: process.env.MUTATION_TESTS?.split(',') ?? [], testTimeout: 60_000 },
});
