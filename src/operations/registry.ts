import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { type DataSet, type Operation, tablesFilledBy } from './operation.ts';
import type { TableDefinition } from './table.ts';

/** The default exports of those files in a folder whose names match, sorted by name. */
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
 * Every operation, in alphabetical order: the files `Get….ts` of this folder. A new file need not be registered
 * anywhere.
 */
export const operations = (await declaredIn('.', /^Get\w+\.(ts|js)$/)) as readonly Operation[];

/** Every data set: the operations, and those that come from files (`files/….ts`). */
export const dataSets: readonly DataSet[] = [
  ...operations,
  ...((await declaredIn('files', /^[A-Z]\w+\.(ts|js)$/)) as readonly DataSet[]),
];

/** Every table of the schema `market`, each once. */
export const tables: readonly TableDefinition[] = [...new Set(dataSets.flatMap(tablesFilledBy))];

/** The data sets whose records are stored in any of these tables. */
export function dataSetsFilling(filled: readonly TableDefinition[]): DataSet[] {
  return dataSets.filter((dataSet) => tablesFilledBy(dataSet).some((table) => filled.includes(table)));
}

/** Their names. */
export const namesFilling = (filled: readonly TableDefinition[]): string[] =>
  dataSetsFilling(filled).map(({ name }) => name);

const findByName = <Item extends DataSet>(items: readonly Item[]) => {
  const byName = new Map(items.map((item) => [item.name.toLowerCase(), item]));
  return (name: string): Item => {
    const found = byName.get(name.toLowerCase());
    if (found !== undefined) return found;
    const known = items.map((item) => item.name);
    throw usageError(`unknown operation "${name}"${didYouMean(name, known)}`, 'list_operations');
  };
};

/**
 * The operation with this name, in upper or lower case.
 *
 * @throws PipelineError `usage` that suggests the most similar name.
 */
export const operationNamed = findByName(operations);

/**
 * The data set with this name, in upper or lower case: an operation, or one that comes from files.
 *
 * @throws PipelineError `usage` that suggests the most similar name.
 */
export const findDataSet = findByName(dataSets);

/**
 * The data set with exactly this name.
 *
 * @throws Error if there is none, which is a defect; for names that users type there is `findDataSet`.
 */
export function dataSetNamed(name: string): DataSet {
  const found = dataSets.find((dataSet) => dataSet.name === name);
  if (found === undefined) throw new Error(`unknown data set ${name}`);
  return found;
}

/** Data sets that fill the same tables, also indirectly through a third one; named by the first of them. */
export interface TableGroup {
  readonly name: string;
  readonly members: readonly string[];
}

const groups = new Map<string, TableGroup>();

/** The group of a data set: the answers of its members are loaded, replayed and pruned together. */
export function tableGroupOf(name: string): TableGroup {
  const known = groups.get(name);
  if (known !== undefined) return known;
  const found = new Set([name]);
  const filled = new Set<TableDefinition>(tablesFilledBy(dataSetNamed(name)));
  for (let size = 0; size !== found.size; ) {
    size = found.size;
    for (const one of dataSets) {
      const own = tablesFilledBy(one);
      if (!own.some((table) => filled.has(table))) continue;
      found.add(one.name);
      for (const table of own) filled.add(table);
    }
  }
  const members = [...found].sort();
  const group = { name: members[0] ?? name, members };
  groups.set(name, group);
  return group;
}
