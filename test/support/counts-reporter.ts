import { writeSync } from 'node:fs';
import type { SerializedError } from 'vitest';
import type { Reporter, TestCase, TestModule, TestRunEndReason } from 'vitest/node';

const nameTest = (test: TestCase) => `${test.module.relativeModuleId} > ${test.fullName}`;

/** The first line of the first error of a test. */
const firstProblem = (test: TestCase) => (test.result().errors?.[0]?.message ?? '').split('\n', 1)[0] ?? '';

/**
 * Prints `N passed, N failed` as the very last line, for machines that read it, and before it each test that failed, or
 * passed only when it was tried again: the end of a log names them.
 *
 * Whatever makes a run fail counts as failed: tests, files that cannot be loaded, hooks, errors
 * outside any test, and a run that never began.
 */
export default class CountsReporter implements Reporter {
  private passed = 0;
  private failed = 1;
  private notable: string[] = [];

  onInit(): void {
    // On exit, because the teardown of the servers may still have something to say before.
    process.once('exit', () => {
      for (const line of this.notable) writeSync(1, `${line}\n`);
      writeSync(1, `${this.passed} passed, ${this.failed} failed\n`);
    });
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const failedTests = tests.filter((test) => test.result().state === 'failed');
    const brokenGroups = groups.filter((group) => group.errors().length > 0).length;
    const failed = failedTests.length + brokenGroups + unhandled.length;
    const passed = tests.filter((test) => test.result().state === 'passed');
    this.passed = passed.length;
    const passedLate = passed.filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0);
    this.notable = [
      ...passedLate.map((test) => `passed only at a second try: ${nameTest(test)}`),
      ...failedTests.map((test) => `failed: ${nameTest(test)}: ${firstProblem(test)}`),
    ];
    this.failed = reason === 'passed' ? failed : Math.max(failed, 1);
  }
}
