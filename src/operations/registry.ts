import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { type DataSet, type Operation, tablesFilledBy } from './operation.ts';
import type { TableDefinition } from './table.ts';

/** The default exports of the files of a folder, in the order of their names. */
const declaredIn = (folder: string, name: RegExp): Promise<unknown[]> =>
  Promise.all(
    readdirSync(join(import.meta.dirname, folder))
      .filter((file) => name.test(file))
      .sort()
      .map(async (file) => {
        const path = join(import.meta.dirname, folder, file);
        return ((await import(pathToFileURL(path).href)) as { default: unknown }).default;
      }),
  );

/**
 * Every operation, in alphabetical order: the files of this folder that are named like one (`Get….ts`).
 * A new file needs no other line anywhere.
 */
export const operations = (await declaredIn('.', /^Get\w+\.(ts|js)$/)) as readonly Operation[];

/** Every data set: the operations, and what comes with files (`files/….ts`). */
export const dataSets: readonly DataSet[] = [
  ...operations,
  ...((await declaredIn('files', /^[A-Z]\w+\.(ts|js)$/)) as readonly DataSet[]),
];

const byName = new Map(operations.map((operation) => [operation.name.toLowerCase(), operation]));

/** Every table of the schema `market`, each once. */
export const tables: readonly TableDefinition[] = [...new Set(dataSets.flatMap(tablesFilledBy))];

/** The data sets that fill any of these tables. */
export function dataSetsFilling(filled: readonly TableDefinition[]): DataSet[] {
  return dataSets.filter((dataSet) => tablesFilledBy(dataSet).some((table) => filled.includes(table)));
}

/**
 * The operation of this name, without regard to case.
 *
 * @throws PipelineError `usage` with the nearest known name.
 */
export function operationNamed(name: string): Operation {
  const found = byName.get(name.toLowerCase());
  if (found !== undefined) return found;
  const known = operations.map((operation) => operation.name);
  throw usageError(`unknown operation "${name}"${didYouMean(name, known)}`, 'list_operations');
}

/**
 * The data set of this name, without regard to case: an operation, or what comes with files.
 *
 * @throws PipelineError `usage` with the nearest known name.
 */
export function anyDataSetNamed(name: string): DataSet {
  const found = dataSets.find((dataSet) => dataSet.name.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return found;
  const known = dataSets.map((dataSet) => dataSet.name);
  throw usageError(`unknown operation "${name}"${didYouMean(name, known)}`, 'list_operations');
}

/**
 * The data set of this name, exactly.
 *
 * @throws Error where there is none: names that people give go to the functions above.
 */
export function dataSetNamed(name: string): DataSet {
  const found = dataSets.find((dataSet) => dataSet.name === name);
  if (found === undefined) throw new Error(`unknown data set ${name}`);
  return found;
}
