import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { NAMED } from './named-mutants.ts';

// The slow layer makes the changes and runs their tests; this test notices a column that was renamed since.
test.each(NAMED)('$name: the text that is changed is in $file once', ({ file, from }) => {
  expect(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split(from)).toHaveLength(2);
});
