import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).map((file) =>
  file.replaceAll('\\', '/'),
);
const readme = readFileSync(join(TESTS, 'README.md'), 'utf8');
const named = [...readme.matchAll(/`([a-z]+\/[\w-]+(?:\.int|\.slow)?\.test\.ts)`/g)].map(
  ([, file = '']) => file,
);

test('test/README.md says of each slow file what of it npm test still runs', () => {
  const slow = files.filter((file) => file.endsWith('.slow.test.ts'));
  expect(slow.length).toBeGreaterThan(0);
  expect(named.filter((file) => file.endsWith('.slow.test.ts')).sort()).toEqual(slow.sort());
});

test('it names files that there are', () => {
  expect(named.filter((file) => !existsSync(join(TESTS, file)))).toEqual([]);
});
