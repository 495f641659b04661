import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Areas whose tests touch no server: they run without Redis and Postgres, in seconds. */
const UNIT = ['core', 'calendar', 'extract', 'operations', 'house', 'sandbox'].map(
  (area) => `test/${area}/**/*.test.ts`,
);

/** Areas that load a machine by themselves: real processes, killed and restarted. One file at a time, at the end. */
const CHAOS = ['test/chaos/**/*.test.ts'];

const services = { globalSetup: './test/support/global-setup.ts' };

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: Math.max(2, Math.min(4, availableParallelism())),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/counts-reporter.ts'],
    projects: [
      { extends: true, test: { name: 'unit', include: UNIT } },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: [...UNIT, ...CHAOS],
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
