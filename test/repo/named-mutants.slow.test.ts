import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Mutant, NAMED } from './named-mutants.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Not needed to run a test, or linked. */
const NOT_COPIED = new Set(['node_modules', '.git', '.eod', 'dist']);

/** The tests of a copy, on the servers of this run. */
const CONFIG = 'vitest.mutants.config.ts';
const configText = (servers: object) => `import { defineConfig } from 'vitest/config';
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: './test/support/setup.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    provide: ${JSON.stringify(servers)},
  },
});
`;

let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'eod-mutants-'));
  cpSync(ROOT, copy, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const servers = { databaseAdminUrl: inject('databaseAdminUrl'), redisUrl: inject('redisUrl') };
  writeFileSync(join(copy, CONFIG), configText(servers));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** As many sets of a property as it takes to notice the changes below. */
const SETS = '5';

/** Runs a test file of the copy until one test fails. Without a change it passes, which this layer shows as well. */
function runTest(file: string) {
  const vitest = join(copy, 'node_modules', 'vitest', 'vitest.mjs');
  const args = [vitest, 'run', '--bail=1', '--config', CONFIG, file];
  const env = { ...process.env, EOD_TEST_SETS: SETS };
  return spawnSync(process.execPath, args, { cwd: copy, env, encoding: 'utf8', timeout: 300_000 });
}

/** The text of a file of the copy with the change; named-mutants.test.ts checks that the text is in it once. */
const changed = ({ file, from, to }: Mutant): string =>
  readFileSync(join(ROOT, file), 'utf8').split(from).join(to);

test.each(NAMED)('$name is noticed by $test', (mutant) => {
  const path = join(copy, mutant.file);
  const before = readFileSync(path, 'utf8');
  writeFileSync(path, changed(mutant));
  try {
    const { status, stdout, signal } = runTest(mutant.test);
    // A file that does not even load proves nothing; tests that hang do.
    if (signal === null) expect(stdout).toMatch(/Tests .*\d+ failed/);
    expect(status).not.toBe(0);
  } finally {
    writeFileSync(path, before);
  }
});
