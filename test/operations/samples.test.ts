import fs, { readdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';

const SRC = new URL('../../src/operations/', import.meta.url);

// The next file in this process must not find the operations that this one enables.
afterEach(() => vi.resetModules());

const filesIn = (folder: string) => readdirSync(new URL(folder, SRC));

/** The names of the samples that were read while this ran. */
async function samplesReadBy(work: () => Promise<unknown>): Promise<string[]> {
  const read: string[] = [];
  const { readFileSync } = fs;
  const observed = (...[path, ...rest]: Parameters<typeof readFileSync>) => {
    const file = path instanceof URL ? fileURLToPath(path) : String(path);
    if (/samples.\w+\.json$/.test(file)) read.push(basename(file, '.json'));
    return readFileSync(path, ...rest);
  };
  Object.assign(fs, { readFileSync: observed });
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    Object.assign(fs, { readFileSync });
    syncBuiltinESMExports();
  }
  return read;
}

test('each operation has its sample in the file of its name, and no other is there', () => {
  const names = ['', 'catalogue/'].map((folder) =>
    filesIn(folder).flatMap((file) => /^(Get\w+)\.ts$/.exec(file)?.[1] ?? []),
  );
  for (const some of names) expect(some.length).toBeGreaterThan(10);
  const files = names.flat().map((name) => `${name}.json`);
  expect(filesIn('samples').toSorted()).toEqual(files.toSorted());
});

test('no sample is read until it is used, also of operations that are enabled', async () => {
  const enabled = filesIn('catalogue').flatMap((file) => /^(Get\w+)\.ts$/.exec(file)?.[1] ?? []);
  // Other tests may have read samples before.
  vi.resetModules();
  const found = await samplesReadBy(async () => {
    const { useOperations } = await import('../../src/operations/registry.ts');
    const leftOut = await useOperations(enabled.map((name) => ({ name, isEnabled: true })));
    expect(leftOut).toEqual([]);
  });
  expect(found).toEqual([]);

  const { operations } = await import('../../src/operations/registry.ts');
  const used = await samplesReadBy(async () => {
    for (const { sample } of operations) expect([sample.requested, sample.response]).not.toContain(undefined);
  });
  expect(used).toEqual(operations.map(({ name }) => name));
});
