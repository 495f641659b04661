import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Tests that use real servers, in seconds. Together with the tests that need none they are `npm test`. */
const INTEGRATION = ['test/**/*.int.test.ts'];
/** What takes long: models, chaos, second queues, browsers, other programs, whole pages. Only `npm run test:all` runs them. */
const SLOW = ['test/**/*.slow.test.ts'];

/** How many times as many sets as in `npm test` a property is checked with in the slow layer. */
const SETS = 20;

/**
 * Files that check properties run in the slow layer once more, with more sets; so do those that choose one queue, on both,
 * and those of which some tests are for it alone.
 */
const AGAIN = readdirSync(join(import.meta.dirname, 'test'), { recursive: true, encoding: 'utf8' })
  .map((file) => `test/${file.replaceAll('\\', '/')}`)
  .filter((file) => file.endsWith('.test.ts') && !file.endsWith('.slow.test.ts'))
  .filter((file) =>
    readFileSync(join(import.meta.dirname, file), 'utf8').match(
      /support\/(?:for-all|layer)\.ts|\bmostly,|\bmostly\('/,
    ),
  );

const servers = { globalSetup: './test/support/global-setup.ts' };

export default defineConfig({
  test: {
    pool: 'forks',
    // A process serves many files: loading the modules anew for each took as long as a sixth of the tests.
    isolate: false,
    setupFiles: './test/support/setup.ts',
    // Most tests wait for a server now and then: three keep two cores busy.
    maxWorkers: Math.max(3, Math.min(4, availableParallelism())),
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/counts-reporter.ts'],
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: [...INTEGRATION, ...SLOW] },
      },
      { extends: true, test: { name: 'integration', include: INTEGRATION, ...servers } },
      {
        extends: true,
        test: {
          name: 'slow',
          include: [...SLOW, ...AGAIN],
          ...servers,
          provide: { isSlow: true, sets: SETS },
          testTimeout: 600_000,
          hookTimeout: 120_000,
          // After what takes seconds.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
