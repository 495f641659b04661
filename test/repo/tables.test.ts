import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** The TypeScript files of a folder of src/. */
const filesOf = (folder: string) =>
  readdirSync(join(SRC, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file));

test.each(['jobs', 'cli', 'web'])(
  'no file of %s names a table of the schema etl, in SQL or in words',
  (folder) => {
    const files = filesOf(folder);
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => readFileSync(join(SRC, file), 'utf8').includes('etl.'))).toEqual([]);
  },
);
