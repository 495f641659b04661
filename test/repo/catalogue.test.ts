import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { catalogue } from '../support/catalogue.ts';

const SOURCE = fileURLToPath(new URL('../../src/', import.meta.url));
const OWN_FOLDER = join('operations', 'catalogue') + sep;

test('no line outside src/operations/catalogue names an operation of the catalogue', () => {
  expect(catalogue.length).toBeGreaterThan(25);
  const names = new RegExp(`\\b(?:${catalogue.map(({ name }) => name).join('|')})\\b`);
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(SOURCE.length));
  expect(files.filter((file) => file.startsWith(OWN_FOLDER)).length).toBeGreaterThan(25);
  const lines = files
    .filter((file) => !file.startsWith(OWN_FOLDER))
    .flatMap((file) =>
      readFileSync(join(SOURCE, file), 'utf8')
        .split('\n')
        .flatMap((line) => (names.test(line) ? [`${file}: ${line.trim()}`] : [])),
    );
  expect(lines).toEqual([]);
});
