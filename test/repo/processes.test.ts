import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Calls that start eod, and paths of its launcher for processes that a test starts by itself. */
const STARTS = [/\b(?:spawnEod|runEod)\(/g, /bin\/eod\.mjs(?!")/g];

/** What the program is made of; here are the tools of the tests that start it, and tests that load the machine. */
const EXEMPT = /^(?:support|chaos|repo)\b/;

test('tests start eod as a process in a dozen places at most', () => {
  const folder = join(import.meta.dirname, '..');
  const places = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !EXEMPT.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      return STARTS.flatMap((start) => text.match(start) ?? []).map((found) => `${file}: ${found}`);
    });
  expect(
    places.length,
    `run the command in this process (runCli, startCli), unless the test is about signals, exit codes, memory or packaging:\n${places.join('\n')}`,
  ).toBeLessThanOrEqual(12);
  // That they are found at all.
  expect(places.length).toBeGreaterThan(6);
});
