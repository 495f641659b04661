import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  GENERATED_FILES,
  GENERATED_PAGES,
  pageFile,
  withGeneratedParts,
} from '../../scripts/generate-docs.ts';

test.each(GENERATED_PAGES)('the generated tables of %s say what the code does', (page) => {
  const text = readFileSync(pageFile(page), 'utf8');
  expect(text, 'run: npm run docs:generate').toBe(withGeneratedParts(page, text));
});

test('the diagram of docs/tables.md names tables and views of the page', () => {
  const page = readFileSync(pageFile('docs/tables.md'), 'utf8');
  const [, diagram = ''] = /```mermaid\n([^`]*)```/.exec(page) ?? [];
  const entities = [...diagram.matchAll(/^ +(\w+) \S+--\S+ (\w+) :/gm)].flatMap(([, left, right]) => [
    left,
    right,
  ]);
  const names = entities.map((name = '') => name.replace(/^market_history_/, ''));
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !page.includes(`- \`market.${name}\``))).toEqual([]);
});

test.each(Object.keys(GENERATED_FILES))('%s is what the code makes of it', (file) => {
  expect(readFileSync(pageFile(file), 'utf8'), 'run: npm run docs:generate').toBe(GENERATED_FILES[file]?.());
});
