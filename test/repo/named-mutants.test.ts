import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { NAMED } from './named-mutants.ts';

// The slow layer changes them and runs their tests; a renamed column is noticed here.
test.each(NAMED)('$name: the text that is changed is in $file once', ({ file, from }) => {
  expect(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split(from)).toHaveLength(2);
});
