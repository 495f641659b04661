/**
 * Measures with Stryker, for each module of the pure core, how many small changes to it (mutants) its tests notice:
 * `npm run test:mutation`, or `npm run test:mutation -- envelope times` for some modules. It takes minutes for each
 * module, so CI does not run it. It fails if a module is below the threshold.
 *
 * Only the tests listed for a module are run. A mutant also counts as missed if it fails while a test file is loaded or
 * in `beforeAll`, because then no test has failed: call the code under test inside of tests.
 */
import { Stryker } from '@stryker-mutator/core';

/** The share of mutants that must be noticed. */
const THRESHOLD = 0.92;

const MODULES = {
  'src/core/days.ts': ['test/core/days.test.ts'],
  'src/calendar/calendar.ts': ['test/calendar/calendar.test.ts'],
  'src/calendar/entries.ts': ['test/calendar/entries.test.ts'],
  'src/extract/decimals.ts': ['test/extract/decimals.test.ts'],
  'src/extract/diagnostics.ts': ['test/extract/diagnostics.test.ts'],
  'src/extract/envelope.ts': [
    'test/extract/answers.test.ts',
    'test/extract/csv.test.ts',
    'test/extract/envelope.test.ts',
    'test/extract/xml.test.ts',
  ],
  'src/extract/times.ts': ['test/extract/values.test.ts'],
  'src/extract/values.ts': ['test/extract/values.test.ts'],
  'src/jobs/runs/answered.ts': ['test/jobs/answered.test.ts', 'test/jobs/plan.test.ts'],
  'src/jobs/runs/plan-windows.ts': ['test/jobs/plan.test.ts'],
  'src/jobs/worker/failure-policy.ts': ['test/jobs/failure-policy.test.ts'],
  'src/load/market/identity.ts': ['test/load/identity.test.ts'],
};

const wanted = process.argv.slice(2);
const selected = Object.entries(MODULES).filter(
  ([module]) => wanted.length === 0 || wanted.some((name) => module.includes(name)),
);
if (selected.length === 0) throw new Error(`no module matches ${wanted.join(', ')}`);

const summary = [];
for (const [module, tests] of selected) {
  process.env.MUTATION_TESTS = tests.join(',');
  const mutants = await new Stryker({
    mutate: [module],
    testRunner: 'vitest',
    vitest: { configFile: 'vitest.mutation.config.ts', related: false },
    coverageAnalysis: 'perTest',
    concurrency: 1,
    reporters: ['progress-append-only'],
    logLevel: 'warn',
    warnings: false,
    // Stryker rewrites this file with an API that TypeScript 7 no longer has.
    tsconfigFile: 'none',
    ignorePatterns: ['.eod', 'dist', 'docs'],
  }).runMutationTest();
  summary.push(report(module, mutants));
}
for (const { module, share, noticed, counted } of summary) {
  console.log(`${(share * 100).toFixed(1).padStart(5)} %  ${noticed} of ${counted}  ${module}`);
}
// The share is NaN, which fails too, if a module has no mutants because it no longer exists.
if (!summary.every(({ share }) => share >= THRESHOLD)) process.exitCode = 1;

function report(module, mutants) {
  const counted = mutants.filter(
    ({ status }) => !['Ignored', 'CompileError', 'RuntimeError'].includes(status),
  );
  const missed = counted.filter(({ status }) => status === 'Survived' || status === 'NoCoverage');
  for (const { location, mutatorName, replacement, status } of missed) {
    const { line, column } = location.start;
    console.log(`${module}:${line}:${column}  ${status} ${mutatorName}: ${replacement}`);
  }
  const noticed = counted.length - missed.length;
  return { module, share: noticed / counted.length, noticed, counted: counted.length };
}
