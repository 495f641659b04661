import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const tests = process.env.MUTATION_TESTS?.split(',') ?? [];

/** In the order in which they are named, the quick ones first: the first that fails ends the run. */
class AsNamed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const at = ({ moduleId }: TestSpecification) => tests.findIndex((test) => moduleId.endsWith(test));
    return files.sort((a, b) => at(a) - at(b));
  }
}

/**
 * The tests of some modules, named by `scripts/mutation.mjs`; Stryker runs them against each mutant. It kills the process
 * of tests that hang, so that the servers are started by the script and not by a global setup.
 */
export default defineConfig({
  test: {
    include: tests,
    setupFiles: './test/support/setup.ts',
    testTimeout: 60_000,
    sequence: { sequencer: AsNamed },
    provide: { databaseAdminUrl: process.env.TEST_DATABASE_ADMIN_URL ?? '', redisUrl: '' },
  },
});
