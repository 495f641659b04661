import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { expect, test } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
const readme = readFileSync(join(TESTS, 'README.md'), 'utf8');
const files = [...readme.matchAll(/`((?:[a-z-]+\/)*[\w-]+(?:\.int|\.slow)?\.test\.ts)`/g)].map(
  ([, file = '']) => file,
);

test('test/README.md names files that exist', () => {
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => !existsSync(join(TESTS, file)))).toEqual([]);
});

/** Folders of test/ that test no folder of src/. */
const OTHERS = ['support', 'fixtures', 'repo', 'reliability', 'chaos', 'services'];

test('the other folders of test/ are those of src/', () => {
  const src = join(TESTS, '..', 'src');
  const entries = readdirSync(TESTS, { recursive: true, withFileTypes: true });
  const folders = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(TESTS, entry.parentPath))
    .filter((folder) => !OTHERS.includes(folder.split(sep)[0] as string));
  expect(new Set(folders).size).toBeGreaterThan(20);
  expect([...new Set(folders)].filter((folder) => !existsSync(join(src, folder)))).toEqual([]);
});
