import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests that need Postgres, Redis or processes of `eod` are named `*.int.test.ts`; all others run anywhere, in seconds. */
const INTEGRATION = ['test/**/*.int.test.ts'];

/** Tests with real processes and servers, killed and restarted. They wait more than they work; at the end, beside each other. */
const CHAOS = ['test/chaos/**/*.int.test.ts'];

/** The longest of all, so that nothing has to wait for it at the end. */
const LONGEST = 'test/chaos/chaos.int.test.ts';

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.endsWith(LONGEST);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

const services = { globalSetup: './test/support/global-setup.ts' };

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
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
