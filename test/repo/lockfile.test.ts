import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as z from 'zod';

const Package = z.object({
  resolved: z.string().optional(),
  integrity: z.string().optional(),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});
const Lock = z.object({ packages: z.record(z.string(), Package) });
const text = readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8');
const packages = Object.entries(Lock.parse(JSON.parse(text)).packages);

test('package-lock.json knows the builds for every platform', () => {
  // One that is missing, because it could not be found when the file was written, makes `npm ci` refuse.
  const missing = packages.flatMap(([path, { optionalDependencies }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !packages.some(([other]) => other.endsWith(`node_modules/${name}`)))
      .map((name) => `${path} needs ${name}`),
  );
  expect(missing).toEqual([]);
});

test('package-lock.json fixes contents, not a location to get them from', () => {
  const installed = packages.filter(([path]) => path !== '');
  expect(installed.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path)).toEqual([]);
  expect(installed.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
});
