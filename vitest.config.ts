import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Tests that need Postgres, Redis or processes of `eod` are named `*.int.test.ts`; all others run anywhere, in seconds. */
const INTEGRATION = ['test/**/*.int.test.ts'];

/** Tests that load a machine by themselves: real processes, killed and restarted. Two files at a time, at the end. */
const CHAOS = ['test/chaos/**/*.int.test.ts'];

const services = { globalSetup: './test/support/global-setup.ts' };

export default defineConfig({
  // Operations of users import it from the package.
  resolve: { alias: { 'eod-pipeline/operations': join(import.meta.dirname, 'src/operations/public.ts') } },
  test: {
    pool: 'forks',
    // A process serves many files: loading the modules anew for each took as long as a sixth of the tests.
    isolate: false,
    setupFiles: './test/support/setup.ts',
    // Most tests wait for a server now and then: three keep two cores busy.
    maxWorkers: Math.max(3, Math.min(4, availableParallelism())),
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
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
