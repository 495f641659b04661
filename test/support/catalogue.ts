import { readdirSync } from 'node:fs';
import type { Database } from '../../src/load/database/database.ts';
import { migrateDatabase } from '../../src/load/migrate.ts';
import { DEFAULT_VIEW_SETTINGS } from '../../src/load/state/coverage/completeness.ts';
import type { Operation } from '../../src/operations/operation.ts';

export const FOLDER = new URL('../../src/operations/catalogue/', import.meta.url);

/** The operations that come with the project and are not requested until they are enabled, in alphabetical order. */
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

/** By instrument and day, of one day only, by instrument alone, deals, contracts, and a list without dates. */
export const various: readonly Operation[] = [
  'GetStatsMCap',
  'GetVolatality',
  'GetCompanyData',
  'GetBulkDeals',
  'GetBhavCopyFO',
  'GetMei',
].map(inCatalogue);

/** Creates the tables of operations, which this process uses from then on, until the end of the test file. */
export async function enable(database: Database, operations: readonly Operation[]): Promise<void> {
  const names = operations.map(({ name }) => name);
  await migrateDatabase(database, DEFAULT_VIEW_SETTINGS, { names, to: 'enabled', by: 'test' });
}
