import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
const readme = readFileSync(join(TESTS, 'README.md'), 'utf8');
const named = [...readme.matchAll(/`([a-z]+\/[\w-]+(?:\.int|\.slow)?\.test\.ts)`/g)].map(
  ([, file = '']) => file,
);

test('test/README.md names files that exist', () => {
  expect(named.filter((file) => !existsSync(join(TESTS, file)))).toEqual([]);
});
