/**
 * Measures with Stryker how many small changes to modules (mutants) the tests notice that `mutated-modules.mjs` names for
 * them. Most modules take minutes, those whose tests need a server up to an hour, so CI does not run it. It fails if a
 * module whose tests need no server is below the threshold.
 *
 * Only the tests listed for a module are run. A mutant also counts as missed if it fails while a test file is loaded or
 * in `beforeAll`, because then no test has failed: call the code under test inside of tests.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Stryker } from '@stryker-mutator/core';
import { startPrivatePostgres } from '../test/support/private-postgres.ts';
import { prepareTemplate } from '../test/support/template.ts';
import { MODULES, SMALL } from './mutated-modules.mjs';
import { describeMutant } from './mutation-reporter.mjs';
import { NAMED } from './named-mutants.mjs';
import { sqlMutants } from './sql-mutants.mjs';

/** The share of mutants that must be noticed. */
const THRESHOLD = 0.92;

/** Not needed to run a test, or linked. */
const NOT_COPIED = new Set(['node_modules', '.git', '.eod', 'dist', '.stryker-tmp']);

const USAGE = `npm run test:mutation                      all modules whose tests need no server
npm run test:mutation -- WORD…             modules whose path has one of the words: envelope load/market/merge
npm run test:mutation -- --sql WORD…       the same for operators and the like in SQL, which Stryker does not change
npm run test:mutation -- --named [WORD…]   the changes of scripts/named-mutants.mjs`;

const [mode] = process.argv.slice(2).filter((word) => word.startsWith('-'));
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const isWanted = (name) => wanted.length === 0 || wanted.some((word) => name.includes(word));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));
if (mode === '--named') await tryNamed(NAMED.filter(({ name }) => isWanted(name)));
else if (mode === undefined || mode === '--sql') await tryModules(mode === '--sql' ? mutateSql : mutate);
else console.log(USAGE);

/**
 * Makes each named change in a copy of the repository and runs its test, which has to fail and to pass without the change.
 */
function tryNamed(mutants) {
  if (mutants.length === 0) throw new Error(`no mutant matches ${wanted.join(', ')}`);
  return inCopy((copy, run) => {
    const unchanged = run([...new Set(mutants.map(({ test }) => test))]);
    if (unchanged.status !== 0) throw new Error(`tests fail without a change:\n${unchanged.stdout}`);
    for (const { name, file, from, to, test } of mutants) {
      const [before, after, ...more] = readFileSync(join(copy, file), 'utf8').split(from);
      if (after === undefined || more.length > 0)
        throw new Error(`${name}: ${file} does not have its text once`);
      const noticed = isNoticed(run([test], { [file]: `${before}${to}${after}` }));
      console.log(`${noticed ? 'noticed ' : 'Survived'}  ${name}: ${file}, ${test}`);
      if (!noticed) process.exitCode = 1;
    }
  });
}

/** Makes each small change to the SQL of modules in a copy of the repository and runs the tests named for them. */
function mutateSql(modules) {
  return inCopy(async (copy, run) => {
    const config = ['--config', 'vitest.mutation.config.ts'];
    const unchanged = run(config);
    if (unchanged.status !== 0) throw new Error(`tests fail without a change:\n${unchanged.stdout}`);
    const mutants = [];
    for (const fileName of modules) {
      for (const { text, line, column, from, to } of sqlMutants(readFileSync(join(copy, fileName), 'utf8'))) {
        const ended = run(config, { [fileName]: text });
        // Here a signal ends the process, and with it the server.
        await setImmediate();
        const isSql = !/syntax error at or near/.test(ended.stdout);
        const status = !isSql ? 'CompileError' : isNoticed(ended) ? 'Killed' : 'Survived';
        const start = { line, column };
        mutants.push({ fileName, status, location: { start }, mutatorName: from, replacement: to });
        console.error(describeMutant(mutants.at(-1)));
      }
    }
    return mutants;
  });
}

/** A file that does not even load proves nothing; tests that hang do. */
function isNoticed({ status, stdout, signal }) {
  return signal !== null || (status !== 0 && /Tests .*\d+ failed/.test(stdout));
}

/** @param work gets a copy of the repository, and a function that runs Vitest there while some files have another text. */
async function inCopy(work) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const copy = mkdtempSync(join(tmpdir(), 'eod-mutants-'));
  const run = (args, texts = {}) => {
    const before = Object.keys(texts).map((file) => [file, readFileSync(join(copy, file))]);
    for (const [file, text] of Object.entries(texts)) writeFileSync(join(copy, file), text);
    try {
      return spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--bail=1', ...args], {
        cwd: copy,
        encoding: 'utf8',
        timeout: 300_000,
      });
    } finally {
      for (const [file, text] of before) writeFileSync(join(copy, file), text);
    }
  };
  try {
    cpSync(root, copy, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    return await work(copy, run);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Modules by the entry that names their tests: the longest path that fits a module. */
function selectModules() {
  const named = Object.entries(MODULES).flatMap(([name, tests]) => [
    `src/${name}`,
    ...tests.map((test) => `test/${test}`),
  ]);
  const gone = named.filter((path) => !existsSync(path));
  if (gone.length > 0)
    throw new Error(`scripts/mutated-modules.mjs names what is not there: ${gone.join(', ')}`);
  const entries = Object.keys(MODULES).sort((a, b) => b.length - a.length);
  const selected = new Map();
  for (const path of readdirSync('src', { recursive: true }).sort()) {
    const module = `src/${path}`;
    const entry = entries.find((name) => `${path}/`.startsWith(`${name}/`));
    if (!path.endsWith('.ts') || entry === undefined || !isWanted(module)) continue;
    if (wanted.length === 0 && MODULES[entry].some(needsServer)) continue;
    selected.set(entry, [...(selected.get(entry) ?? []), module]);
  }
  return selected;
}

function needsServer(test) {
  return test.endsWith('.int.test.ts');
}

async function tryModules(mutateModules) {
  const selected = selectModules();
  if (selected.size === 0) throw new Error(`no module matches ${wanted.join(', ')}`);
  Object.assign(process.env, SMALL);
  const server = [...selected.keys()].some((entry) => MODULES[entry].some(needsServer))
    ? await startPrivatePostgres()
    : undefined;
  const summary = [];
  try {
    if (server !== undefined) {
      await prepareTemplate(server.url);
      process.env.TEST_DATABASE_ADMIN_URL = server.url;
    }
    for (const [entry, modules] of selected) {
      process.env.MUTATION_TESTS = MODULES[entry].map((test) => `test/${test}`).join(',');
      const found = report(modules, await mutateModules(modules));
      summary.push(...found);
      const isPure = !MODULES[entry].some(needsServer);
      if (isPure && found.some(({ share }) => share < THRESHOLD)) process.exitCode = 1;
    }
  } finally {
    await server?.stop();
  }
  for (const { module, share, noticed, counted } of summary) {
    console.log(`${(share * 100).toFixed(1).padStart(5)} %  ${noticed} of ${counted}  ${module}`);
  }
}

/** Makes each small change to the modules and runs the tests. */
function mutate(modules) {
  return new Stryker({
    mutate: modules,
    testRunner: 'vitest',
    vitest: { configFile: 'vitest.mutation.config.ts', related: false },
    coverageAnalysis: 'perTest',
    concurrency: 1,
    plugins: ['@stryker-mutator/vitest-runner', './scripts/mutation-reporter.mjs'],
    reporters: ['as-tried'],
    logLevel: 'warn',
    warnings: false,
    // Stryker rewrites this file with an API that TypeScript 7 no longer has.
    tsconfigFile: 'none',
    ignorePatterns: ['.eod', 'dist', 'docs'],
  }).runMutationTest();
}

/** The share of each module's mutants that were noticed; prints the others. */
function report(modules, mutants) {
  const isCounted = ({ status }) => !['Ignored', 'CompileError', 'RuntimeError'].includes(status);
  return modules.flatMap((module) => {
    const counted = mutants.filter((one) => isCounted(one) && one.fileName.endsWith(module));
    const missed = counted.filter(({ status }) => status === 'Survived' || status === 'NoCoverage');
    for (const mutant of missed) console.log(describeMutant(mutant));
    const noticed = counted.length - missed.length;
    // A module of types alone has no mutants.
    return counted.length === 0
      ? []
      : [{ module, share: noticed / counted.length, noticed, counted: counted.length }];
  });
}
