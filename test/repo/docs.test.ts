import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RELIABILITY_PAGE, withFailureTable } from '../../scripts/generate-docs.ts';

test('the table of failures in docs/reliability.md is what the policy decides', () => {
  const page = readFileSync(RELIABILITY_PAGE, 'utf8');
  expect(page, 'run: npm run docs:generate').toBe(withFailureTable(page));
});
