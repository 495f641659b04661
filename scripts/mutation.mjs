/**
 * Measures with Stryker, for each module of the pure core, how many small changes to it (mutants) its tests notice:
 * `npm run test:mutation`, or `npm run test:mutation -- envelope times` for some modules. It takes minutes for each
 * module, so CI does not run it. It fails if a module is below the threshold.
 *
 * `npm run test:mutation -- --named`, or `-- --named moment` for some: makes the changes of `named-mutants.mjs`, one by
 * one, in a copy of the repository, and runs the test file that has to notice each. Most of them take a server, and a
 * quarter of a minute.
 *
 * Only the tests listed for a module are run. A mutant also counts as missed if it fails while a test file is loaded or
 * in `beforeAll`, because then no test has failed: call the code under test inside of tests.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { NAMED } from './named-mutants.mjs';

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
  'src/load/market/observed-aliases/identity.ts': ['test/load/identity.test.ts'],
};

/** Not needed to run a test, or linked. */
const NOT_COPIED = new Set(['node_modules', '.git', '.eod', 'dist', '.stryker-tmp']);

const isNamed = process.argv[2] === '--named';
const wanted = process.argv.slice(isNamed ? 3 : 2);
const isWanted = (name) => wanted.length === 0 || wanted.some((word) => name.includes(word));
if (isNamed) tryNamed(NAMED.filter(({ name }) => isWanted(name)));
else await tryModules(Object.entries(MODULES).filter(([module]) => isWanted(module)));

/** Makes each change in a copy of the repository and runs its test, which has to fail and to pass without the change. */
function tryNamed(mutants) {
  if (mutants.length === 0) throw new Error(`no mutant matches ${wanted.join(', ')}`);
  const root = fileURLToPath(new URL('..', import.meta.url));
  const copy = mkdtempSync(join(tmpdir(), 'eod-mutants-'));
  const run = (tests) =>
    spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--bail=1', ...tests], {
      cwd: copy,
      encoding: 'utf8',
    });
  try {
    cpSync(root, copy, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    const unchanged = run([...new Set(mutants.map(({ test }) => test))]);
    if (unchanged.status !== 0) throw new Error(`tests fail without a change:\n${unchanged.stdout}`);
    for (const { name, file, from, to, test } of mutants) {
      const path = join(copy, file);
      const text = readFileSync(path, 'utf8');
      const [before, after, ...more] = text.split(from);
      if (after === undefined || more.length > 0)
        throw new Error(`${name}: ${file} does not have its text once`);
      writeFileSync(path, `${before}${to}${after}`);
      const { status, stdout } = run([test]);
      writeFileSync(path, text);
      // A file that does not even load proves nothing.
      const noticed = status !== 0 && /Tests .*\d+ failed/.test(stdout);
      console.log(`${noticed ? 'noticed ' : 'Survived'}  ${name}: ${file}, ${test}`);
      if (!noticed) process.exitCode = 1;
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function tryModules(selected) {
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
}

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
