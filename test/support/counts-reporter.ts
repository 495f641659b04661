import { writeSync } from 'node:fs';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule, TestRunEndReason } from 'vitest/node';

/**
 * Prints `N passed, N failed` as the very last line, for machines that read it, and before it each test that passed only
 * when it was tried again.
 *
 * Whatever makes a run fail counts as failed: tests, files that cannot be loaded, hooks, errors
 * outside any test, and a run that never began.
 */
export default class CountsReporter implements Reporter {
  private passed = 0;
  private failed = 1;
  private passedLate: string[] = [];

  onInit(): void {
    // On exit, because the teardown of the servers may still have something to say before.
    process.once('exit', () => {
      for (const name of this.passedLate) writeSync(1, `passed only at a second try: ${name}\n`);
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
    const failedTests = tests.filter((test) => test.result().state === 'failed').length;
    const brokenGroups = groups.filter((group) => group.errors().length > 0).length;
    const failed = failedTests + brokenGroups + unhandled.length;
    const passed = tests.filter((test) => test.result().state === 'passed');
    this.passed = passed.length;
    this.passedLate = passed
      .filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0)
      .map((test) => `${test.module.relativeModuleId} > ${test.fullName}`);
    this.failed = reason === 'passed' ? failed : Math.max(failed, 1);
  }
}
