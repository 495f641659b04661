import fs, { readdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';

const SRC = new URL('../../src/operations/', import.meta.url);

// The next file in this process must not find the modules of this one.
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
  const names = filesIn('.').flatMap((file) => /^(Get\w+)\.ts$/.exec(file)?.[1] ?? []);
  expect(names.length).toBeGreaterThan(10);
  expect(filesIn('samples').toSorted()).toEqual(names.map((name) => `${name}.json`).toSorted());
});

test('no sample is read until it is used', async () => {
  // Other tests may have read samples before.
  vi.resetModules();
  const { operations } = await import('../../src/operations/registry.ts');
  const used = await samplesReadBy(async () => {
    for (const { sample } of operations) expect([sample.requested, sample.response]).not.toContain(undefined);
  });
  expect(used).toEqual(operations.map(({ name }) => name));
});
