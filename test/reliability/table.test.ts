import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/reliability.md', ROOT), 'utf8');

/** The last cell of each row of a table: "`file`: title; title; `file`". */
const proofs = page
  .split('\n')
  .filter((line) => /^\|.*\.test\.ts/.test(line))
  .map((line) => line.split('|').at(-2)?.trim() ?? '');

test('every test the tables name is there', () => {
  expect(proofs.length).toBeGreaterThan(25);
  for (const proof of proofs) {
    for (const [, file = '', titles = ''] of proof.matchAll(/`([^`]+\.test\.ts)`(?:: ([^`]*))?/g)) {
      const path = new URL(file.includes('/') ? file : `test/reliability/${file}`, ROOT);
      expect(existsSync(path), file).toBe(true);
      const source = readFileSync(path, 'utf8');
      for (const piece of titles.split(/[;…]/).map((text) => text.replace(/\(.*\)/, '').trim())) {
        expect(source.toLowerCase(), `${file}: ${piece}`).toContain(piece.toLowerCase());
      }
    }
  }
});
