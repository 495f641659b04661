import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/reliability.md', ROOT), 'utf8');

test('every test that docs/reliability.md names is there', () => {
  const files = [...page.matchAll(/`([\w./-]+\.test\.ts)`/g)].map(([, file]) => file as string);
  expect(new Set(files).size).toBeGreaterThan(25);
  const paths = files.map((file) => (file.includes('/') ? file : `test/reliability/${file}`));
  expect(paths.filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
});
