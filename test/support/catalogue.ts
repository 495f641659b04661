import { readdirSync } from 'node:fs';
import type { Operation } from '../../src/operations/operation.ts';

export const FOLDER = new URL('../../src/operations/catalogue/', import.meta.url);

/** The operations that come with the project and are not asked for until they are enabled, in alphabetical order. */
export const catalogue: readonly Operation[] = await Promise.all(
  readdirSync(FOLDER)
    .filter((file) => /^Get\w+\.ts$/.test(file))
    .sort()
    .map(async (file) => {
      const { default: operation } = (await import(new URL(file, FOLDER).href)) as { default: Operation };
      if (`${operation.name}.ts` !== file) throw new Error(`${file} declares ${operation.name}`);
      return operation;
    }),
);

export function inCatalogue(name: string): Operation {
  const found = catalogue.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`${name} is not in the catalogue`);
  return found;
}
