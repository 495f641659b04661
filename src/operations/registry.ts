import { type PipelineError, usageError } from '../core/errors.ts';
import type { Pair } from '../core/exchanges.ts';
import { didYouMean } from '../core/input.ts';
import { sentenceCase } from '../core/wording.ts';
import {
  type DataSet,
  expectedVariants,
  type Operation,
  type Shape,
  tablesFilledBy,
} from '../declaration/operation.ts';
import type { TableDefinition } from '../declaration/table.ts';
import { COMPUTED } from './files/CorporateEvents.ts';
import { dataSets, fileSets, operations } from './index.ts';

export { dataSets, operations };

// Looks data sets up by their names, and by what they fill.

/** Every table of the schema `market`, each once. */
export const tables: readonly TableDefinition[] = [...new Set(dataSets.flatMap(tablesFilledBy))];

/** Every data set that has coverage by day. */
export const coveredSets: readonly DataSet[] = dataSets.filter(
  ({ windows }) => windows.per !== 'file' || windows.days !== 'none',
);

/** True if it has a state for each trading day, or for each quarter. */
export const hasTradingDays = (dataSet: DataSet): boolean => expectedVariants(dataSet) !== null;

/** True if this is a data set. Windows and responses of others may be stored, if another version has requested them. */
export const isDataSet = (name: string): boolean => dataSets.some((dataSet) => dataSet.name === name);

/** The data sets whose records are stored in any of these tables. */
export function dataSetsFilling(filled: readonly TableDefinition[]): DataSet[] {
  return dataSets.filter((dataSet) => tablesFilledBy(dataSet).some((table) => filled.includes(table)));
}

/** Their names. */
export const namesFilling = (filled: readonly TableDefinition[]): string[] =>
  dataSetsFilling(filled).map(({ name }) => name);

/** What the responses that fill a table list in full, see `Shape.fullSet`. */
export function listedInFull(table: TableDefinition): Shape['fullSet'] {
  const shapes = dataSetsFilling([table]).flatMap(({ shapes }) => shapes);
  return shapes.find((shape) => shape.table === table && shape.fullSet !== 'none')?.fullSet ?? 'none';
}

/**
 * The column of the days by which responses are compared with stored rows. Null where a table has none, and where
 * responses list a whole exchange: then they are compared with all rows, whatever days these are of.
 */
export const comparedDay = (table: TableDefinition): string | null =>
  listedInFull(table) === 'exchange' ? null : table.dateColumn;

/** The data sets that a user means: by the name of one, or by that of a table which they fill, in any case. */
export function allNamedBy<Item extends DataSet>(items: readonly Item[], text: string): readonly Item[] {
  const typed = text.toLowerCase();
  const item = items.find(({ name }) => name.toLowerCase() === typed);
  // Workers look up operations by name, so tables are not looked at before they have to be.
  if (item !== undefined) return [item];
  const relation = typed.replace(/^market\./, '');
  const fills = ({ table }: Shape) => table.name === relation;
  const first = items.filter(({ shapes }) => fills(shapes[0]));
  return first.length > 0 ? first : items.filter(({ shapes }) => shapes.some(fills));
}

/** The first of them. */
export const namedBy = <Item extends DataSet>(items: readonly Item[], text: string): Item | undefined =>
  allNamedBy(items, text)[0];

/** A data set as people know it. */
interface Titled {
  /** `Prices` */
  readonly title: string;
  /** As it can be typed too: its first table, or its own name where that table means others as well. */
  readonly listedAs: string;
  readonly group: DataSet['group'];
}

/** How a data set is called; null if none has this name. */
export function titled(name: string): Titled | null {
  const dataSet = dataSets.find((dataSet) => dataSet.name === name);
  if (dataSet === undefined) return null;
  const { table } = dataSet.shapes[0];
  const { title = sentenceCase(table.name.replaceAll('_', ' ')), group } = dataSet;
  const isAlone = allNamedBy(dataSets, table.name).every((dataSet) => dataSet.name === name);
  return { title, listedAs: isAlone ? table.name : name, group };
}

/** What a data set is called in lists; its name if there is none of this name. */
export const listedAs = (name: string): string => titled(name)?.listedAs ?? name;

/** The title of a data set with what it is listed as, `Prices, bhavcopy_cm`; its name if there is none of this name. */
export function titleOf(name: string): string {
  const dataSet = titled(name);
  return dataSet === null ? name : `${dataSet.title}, ${dataSet.listedAs}`;
}

/** A data set of an exchange in a sentence: `Prices, bhavcopy_cm NSE`. */
export const pairTitle = ({ operation, exchange }: Pair): string =>
  [titleOf(operation), exchange].filter(Boolean).join(' ');

/** The names and tables of data sets, from which a mistyped one is guessed. */
const listNames = (items: readonly DataSet[]): string[] =>
  items.flatMap(({ name, shapes }) => [name, ...shapes.map(({ table }) => table.name)]);

/** The error for a name that no operation has: it is that of a data set that is never requested, or of nothing. */
export function unknownOperation(text: string, known: readonly string[]): PipelineError {
  const ofFiles = namedBy(fileSets, text);
  if (ofFiles === undefined)
    return usageError(`unknown operation "${text}"${didYouMean(text, known)}`, 'list_operations');
  const isComputed = ofFiles.name === COMPUTED;
  return usageError(
    `${titleOf(ofFiles.name)} is never requested${isComputed ? ', but computed from other data' : ''}`,
    isComputed ? undefined : 'import_files',
  );
}

const findAllByName =
  <Item extends DataSet>(items: readonly Item[]) =>
  (name: string): readonly [Item, ...Item[]] => {
    const [first, ...others] = allNamedBy(items, name);
    if (first !== undefined) return [first, ...others];
    throw unknownOperation(name, listNames(items));
  };

const findByName = <Item extends DataSet>(items: readonly Item[]) => {
  const findAll = findAllByName(items);
  return (name: string): Item => findAll(name)[0];
};

/**
 * The operation with this name, or those that fill the table of this name, in any case.
 *
 * @throws PipelineError `usage` that suggests the most similar name, or says that it is never requested.
 */
export const findOperations = findAllByName(operations);

/** The same for the data sets that have coverage by day. */
export const findCovered = findAllByName(coveredSets);

/** The operation with this name. */
export const operationNamed = findByName<Operation>(operations);

/**
 * The data set with this name, or with a table of this name, in any case: an operation, or one that comes from files.
 *
 * @throws PipelineError `usage` that suggests the most similar name.
 */
export const findDataSet = findByName(dataSets);

/** All that fill the table of this name. */
export const findDataSets = findAllByName(dataSets);

/**
 * The data set with exactly this name.
 *
 * @throws Error if there is none, which is a defect; for names that users type there is `findDataSet`.
 */
export function dataSetNamed(name: string): DataSet {
  const dataSet = dataSets.find((dataSet) => dataSet.name === name);
  if (dataSet === undefined) throw new Error(`unknown data set ${name}`);
  return dataSet;
}

/** Data sets that fill the same tables, also indirectly through a third one; named by the first of them. */
interface TableGroup {
  readonly name: string;
  readonly members: readonly string[];
}

const groups = new Map<string, TableGroup>();

/** The group of a data set: the responses of its members are loaded, replayed and pruned together. */
export function tableGroupOf(name: string): TableGroup {
  const known = groups.get(name);
  if (known !== undefined) return known;
  const names = new Set([name]);
  const filled = new Set<TableDefinition>(tablesFilledBy(dataSetNamed(name)));
  for (let size = 0; size !== names.size; ) {
    size = names.size;
    for (const dataSet of dataSets) {
      const tablesOfDataSet = tablesFilledBy(dataSet);
      if (!tablesOfDataSet.some((table) => filled.has(table))) continue;
      names.add(dataSet.name);
      for (const table of tablesOfDataSet) filled.add(table);
    }
  }
  const members = [...names].sort();
  const group = { name: members[0] ?? name, members };
  groups.set(name, group);
  return group;
}
