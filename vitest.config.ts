import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Tests that need Postgres, Redis or processes of `eod` are named `*.int.test.ts`; all others run anywhere, in seconds. */
const INTEGRATION = ['test/**/*.int.test.ts'];

/** Tests that load a machine by themselves: real processes, killed and restarted. One file at a time, at the end. */
const CHAOS = ['test/chaos/**/*.int.test.ts'];

const services = { globalSetup: './test/support/global-setup.ts' };

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: Math.max(2, Math.min(4, availableParallelism())),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/counts-reporter.ts'],
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: INTEGRATION } },
      {
        extends: true,
        test: {
          name: 'integration',
          include: INTEGRATION,
          exclude: CHAOS,
          ...services,
        },
      },
      {
        extends: true,
        test: {
          name: 'chaos',
          include: CHAOS,
          ...services,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
