import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

/** What starts eod as a process: the helpers of the tests, whatever they are called through, and its files. */
const STARTS = /\b(?:spawnEod|runEod|startEod|startSandboxProcess)\b|\bbin\/eod\.mjs\b|\bdist\/cli\/main\b/g;

/** The helpers themselves, and tests that load the machine. */
const EXEMPT = /^(?:support|chaos)\b/;

/** Tests of files that name the launcher and do not start it. */
const READERS = ['dockerfile.test.ts', basename(import.meta.filename)];

test('tests start eod as a process nineteen times at most', () => {
  const folder = join(import.meta.dirname, '..');
  const starts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(
      (file) => /\.(?:ts|tsx|mjs)$/.test(file) && !EXEMPT.test(file) && !READERS.includes(basename(file)),
    )
    .flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8').replaceAll(/^import\b[^;]*;$/gm, '');
      return (text.match(STARTS) ?? []).map((start) => `${file}: ${start}`);
    });
  expect(
    starts.length,
    `run the command in this process (runCli, startCli), unless the test is about signals, kills, several processes at once, exit codes, memory, packaging, or a shell that starts it:\n${starts.join('\n')}`,
  ).toBeLessThanOrEqual(19);
  // That they are found at all.
  expect(starts.length).toBeGreaterThan(6);
});
