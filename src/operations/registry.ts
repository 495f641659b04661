import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { usageError } from '../core/errors.ts';
import type { Pair } from '../core/exchanges.ts';
import { didYouMean } from '../core/input.ts';
import { CODE } from '../core/package-folders.ts';
import { sentenceCase } from '../core/wording.ts';
import {
  type BrokenFile,
  type DeclaredOperations,
  findDeclared,
  importDeclared,
  isBroken,
  loadDeclared,
  loadFormats,
  tablesTakenBy,
} from './declared.ts';
import type { FileFormat } from './file-format.ts';
import { type DataSet, expectedVariants, type Operation, type Shape, tablesFilledBy } from './operation.ts';
import type { TableDefinition } from './table.ts';

/** The default exports of those files in a folder whose names match, sorted by name. */
const declaredIn = (folder: string, name: RegExp): Promise<unknown[]> =>
  Promise.all(
    readdirSync(join(CODE, 'operations', folder))
      .filter((file) => name.test(file))
      .sort()
      .map(async (file) => {
        const path = join(CODE, 'operations', folder, file);
        return ((await import(pathToFileURL(path).href)) as { default: unknown }).default;
      }),
  );

/** The operations that are requested from the start: the files `Get….ts` of this folder. */
const defaults = (await declaredIn('.', /^Get\w+\.(ts|js)$/)) as readonly Operation[];

/** Data sets that are never requested: their records come from files, or are computed (`files/….ts`). */
const fileSets = (await declaredIn('files', /^[A-Z]\w+\.(ts|js)$/)) as readonly DataSet[];

// These arrays are filled by `useOperations`, so that every module that has imported them sees the same.
const requested: Operation[] = [];
const covered: Operation[] = [];
const stored: Operation[] = [];
const known: DataSet[] = [];
const filled: TableDefinition[] = [];
const declaredFormats: FileFormat[] = [];
let folderInUse: string | undefined;
let declaredElsewhere: readonly DataSet[] = [];
let brokenInUse: readonly BrokenFile[] = [];

/**
 * Every operation that is requested, in alphabetical order: the defaults, and those that this database has enabled.
 */
export const operations: readonly Operation[] = requested;

/**
 * Every operation of whose sessions the state is known: those that are requested, and those that files have filled, for
 * which the source is never called.
 */
export const coveredOperations: readonly Operation[] = covered;

/** True if the source is called for it. */
export const isRequested = (name: string): boolean => requested.some((one) => one.name === name);

/**
 * True if the state of single sessions is known of it, or of single quarters. Where files alone fill it and leave out the
 * days without records, no day is missing.
 */
export const hasSessions = (operation: Operation): boolean =>
  expectedVariants(operation) !== null && (operation.filesSkipDays !== true || isRequested(operation.name));

/** Every data set that has tables: the operations, those that were disabled again, and those that come from files. */
export const dataSets: readonly DataSet[] = known;

/** Every table of the schema `market`, each once. */
export const tables: readonly TableDefinition[] = filled;

/** The formats of files that the user's folder declares. */
export const ownFormats: readonly FileFormat[] = declaredFormats;

/** The data sets that every database has. */
export const builtIn: readonly DataSet[] = [...defaults, ...fileSets];

/** Their tables, which migrations create. */
export const migratedTables: readonly TableDefinition[] = [...new Set(builtIn.flatMap(tablesFilledBy))];

/** An operation that a database has tables of, besides the defaults. */
export interface UsedOperation {
  readonly name: string;
  /** True if it is requested. If not, its rows stay, and files still fill its tables. */
  readonly isEnabled: boolean;
  /** True if it is not requested, and files have filled its tables. */
  readonly isFilled?: boolean;
}

/** An operation that a database has tables of, and that cannot be requested, read or planned here. */
interface LeftOut {
  readonly name: string;
  /** What is wrong with its file; null if no file declares it. */
  readonly problem: string | null;
}

let version = 0;

/**
 * Makes a function that computes something from the operations in use, and computes it again only when these change.
 * What is computed when a module is imported would not know the operations that a database has enabled.
 */
export function fromOperations<Value>(compute: () => Value): () => Value {
  let last: { readonly version: number; readonly value: Value } | undefined;
  return () => {
    if (last?.version !== version) last = { version, value: compute() };
    return last.value;
  };
}

/** Looks for operations of the user in this folder from now on. */
export function lookIn(folder: string | undefined): void {
  folderInUse = folder;
}

/**
 * Uses the defaults and these operations from now on, as far as their files can be used: a file that is missing or
 * broken must not keep the others from their night.
 *
 * @param folder with operations of the user; see EOD_OPERATIONS_DIR.
 * @returns those that are left out, because the others must go on.
 */
export async function useOperations(used: readonly UsedOperation[], folder?: string): Promise<LeftOut[]> {
  folderInUse = folder;
  const loaded: LoadedOperation[] = [];
  const leftOut: LeftOut[] = [];
  const broken: BrokenFile[] = [];
  const taken = tablesTakenBy(builtIn);
  const own = await loadFormats(folder, taken);
  for (const { name, problem } of own.broken) leftOut.push({ name, problem });
  const filledByFiles = own.dataSets.filter((set) => used.some(({ name }) => name === set.name));
  for (const { name, isEnabled, isFilled = false } of used) {
    if (filledByFiles.some((set) => set.name === name)) continue;
    const file = findDeclared(name, folder);
    const found = file === undefined ? undefined : await importDeclared(file, taken);
    if (found === undefined) leftOut.push({ name, problem: null });
    else if (isBroken(found)) {
      leftOut.push({ name, problem: found.problem });
      broken.push(found);
    } else loaded.push({ operation: found, isEnabled, isFilled });
  }
  brokenInUse = broken;
  fill(declaredFormats, own.formats);
  setUsed(loaded, filledByFiles);
  return leftOut;
}

interface LoadedOperation extends Required<Omit<UsedOperation, 'name'>> {
  readonly operation: Operation;
}

function setUsed(further: readonly LoadedOperation[], filledByFiles: readonly DataSet[] = []): void {
  const byName = (a: DataSet, b: DataSet) => (a.name < b.name ? -1 : 1);
  const those = (are: (one: LoadedOperation) => boolean) =>
    further.filter(are).map(({ operation }) => operation);
  const enabled = [...defaults, ...those((one) => one.isEnabled)].sort(byName);
  const all = [...enabled, ...those((one) => !one.isEnabled).sort(byName)];
  fill(covered, [...enabled, ...those((one) => one.isFilled)].sort(byName));
  const sets = [...all, ...fileSets, ...filledByFiles];
  const isSame = requested.length === enabled.length && known.length === sets.length;
  if (isSame && sets.every((one, position) => one === known[position])) return;
  fill(requested, enabled);
  fill(stored, all);
  fill(known, sets);
  fill(filled, new Set(known.flatMap(tablesFilledBy)));
  version += 1;
}

function fill<Item>(array: Item[], items: Iterable<Item>): void {
  array.length = 0;
  for (const item of items) array.push(item);
}

setUsed([]);

/** Every operation that can be requested: the defaults, the catalogue, and those of the user's folder. */
export async function allOperations(folder?: string): Promise<DeclaredOperations> {
  const taken = tablesTakenBy(builtIn);
  const { operations: further, broken } = await loadDeclared(folder, taken);
  const formats = await loadFormats(folder, taken);
  const all = [...defaults.map((operation) => ({ operation, from: 'default' as const })), ...further];
  return {
    operations: all.sort((a, b) => (a.operation.name < b.operation.name ? -1 : 1)),
    broken: [...broken, ...formats.broken],
    fileSets: formats.dataSets,
  };
}

/** Makes what the catalogue and the user's folder declare known by its tables, too: their files are read. */
export async function learnDeclared(folder: string | undefined): Promise<void> {
  const { operations: all, fileSets: own } = await allOperations(folder);
  declaredElsewhere = [...all.map(({ operation }) => operation), ...own];
}

/** True if this is a data set in use. Windows and responses of others may be stored, whose file is missing. */
export const isInUse = (name: string): boolean => dataSets.some((dataSet) => dataSet.name === name);

/** True if this is the name of an operation that comes with eod. */
export const isDefault = (name: string): boolean =>
  defaults.some((one) => one.name.toLowerCase() === name.toLowerCase());

/**
 * True if this is the name of an operation, or after `learnDeclared` of a table, that the catalogue or the user's folder
 * declares, and that is not a default.
 */
export const isDeclaredElsewhere = (name: string): boolean =>
  !isDefault(name) && declaredAs(name) !== undefined;

const declaredAs = (name: string): { readonly name: string } | undefined =>
  findDeclared(name, folderInUse) ?? namedBy(declaredElsewhere, name);

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
  const named = items.find(({ name }) => name.toLowerCase() === typed);
  // Workers look up operations by name, so tables are not looked at before they have to be.
  if (named !== undefined) return [named];
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

/** How a data set is called; null if none in use has this name. */
export function titled(name: string): Titled | null {
  const found = dataSets.find((dataSet) => dataSet.name === name);
  if (found === undefined) return null;
  const { table } = found.shapes[0];
  const { title = sentenceCase(table.name.replaceAll('_', ' ')), group } = found;
  const isAlone = allNamedBy(dataSets, table.name).every((one) => one.name === name);
  return { title, listedAs: isAlone ? table.name : name, group };
}

/** What a data set is called in lists; its name if it is not in use. */
export const listedAs = (name: string): string => titled(name)?.listedAs ?? name;

/** The title of a data set with what it is listed as, `Prices, bhavcopy_cm`; its name if it is not in use. */
export function titleOf(name: string): string {
  const found = titled(name);
  return found === null ? name : `${found.title}, ${found.listedAs}`;
}

/** A data set of an exchange in a sentence: `Prices, bhavcopy_cm NSE`. */
export const pairTitle = ({ operation, exchange }: Pair): string =>
  [titleOf(operation), exchange].filter(Boolean).join(' ');

const findAllByName =
  <Item extends DataSet>(items: readonly Item[]) =>
  (name: string): readonly [Item, ...Item[]] => {
    const isNamed = (item: { readonly name: string }) => item.name.toLowerCase() === name.toLowerCase();
    const [first, ...others] = allNamedBy(items, name);
    if (first !== undefined) return [first, ...others];
    const broken = brokenInUse.find(isNamed);
    if (broken !== undefined) throw usageError(broken.problem);
    const ofFiles = dataSets.filter(({ schedule }) => schedule === null);
    const unrequested = namedBy(ofFiles, name);
    if (unrequested !== undefined)
      throw usageError(
        `${titleOf(unrequested.name)} is never requested, nor known by session: files fill it, or it is computed from other data`,
      );
    const off = namedBy(stored, name) ?? declaredAs(name);
    if (off !== undefined) throw usageError(`${off.name} is not enabled`, 'enable');
    const names = [...items, ...declaredElsewhere].flatMap(({ name: own, shapes }) => [
      own,
      ...shapes.map(({ table }) => table.name),
    ]);
    throw usageError(`unknown operation "${name}"${didYouMean(name, names)}`, 'list_operations');
  };

const findByName = <Item extends DataSet>(items: readonly Item[]) => {
  const findAll = findAllByName(items);
  return (name: string): Item => findAll(name)[0];
};

/**
 * The operation with this name, or those that fill the table of this name, in any case, of those that are requested.
 *
 * @throws PipelineError `usage` that suggests the most similar name, or says that it is not enabled.
 */
export const findOperations = findAllByName(operations);

/** The same, also of those that files have filled. */
export const findCovered = findAllByName(coveredOperations);

/** The same, and also one that was disabled: its windows and responses are still there. */
export const operationNamed = findByName<Operation>(stored);

/**
 * The data set with this name, or with a table of this name, in any case: an operation, or one that comes from files.
 *
 * @throws PipelineError `usage` that suggests the most similar name, or says that it is not enabled.
 */
export const findDataSet = findByName(dataSets);

/** The spelling of the name of any operation, also of one that is not enabled. @throws PipelineError `usage` */
export function operationName(name: string): string {
  return findDeclared(name, folderInUse)?.name ?? operationNamed(name).name;
}

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
interface TableGroup {
  readonly name: string;
  readonly members: readonly string[];
}

const groups = fromOperations(() => new Map<string, TableGroup>());

/** The group of a data set: the responses of its members are loaded, replayed and pruned together. */
export function tableGroupOf(name: string): TableGroup {
  const made = groups().get(name);
  if (made !== undefined) return made;
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
  groups().set(name, group);
  return group;
}
