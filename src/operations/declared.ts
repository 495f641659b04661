import { spawnSync } from 'node:child_process';
import { lstatSync, readdirSync, statSync } from 'node:fs';
import { register } from 'node:module';
import { basename, dirname, extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, PipelineError, usageError } from '../core/errors.ts';
import { CODE } from '../core/package-folders.ts';
import type { DeclarationProblem } from './check-declaration.ts';
import { type FileFormat, formatProblems } from './file-format.ts';
import { type DataSet, type Operation, tablesFilledBy } from './operation.ts';
import type { TableDefinition } from './table.ts';

/** Where an operation is declared: here, and requested from the start; in the catalogue; or in the user's folder. */
type From = 'default' | 'catalogue' | 'folder';

export interface Declared {
  readonly operation: Operation;
  readonly from: From;
}

/** A file that declares an operation, which has the name of the file. */
export interface DeclaredFile {
  readonly name: string;
  readonly path: string;
  readonly from: From;
}

const OWN = join(CODE, 'operations');
const CATALOGUE = join(OWN, 'catalogue');

/** TypeScript is read by Node from 22.18 and 23.6 on. */
const MODULE = /^([A-Za-z]\w*)\.(?:mjs|js|mts|ts)$/;

const named = new WeakSet<object>();

/** The names of the files of a folder, sorted; none if there is no such folder. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw usageError(`EOD_OPERATIONS_DIR: ${folder} cannot be read: ${messageOf(error)}`);
  }
}

/**
 * The modules in a folder with operations of the user and below it, sorted, also those that do not declare one
 * themselves, without installed packages.
 */
export const modulesIn = (folder: string): string[] =>
  namesIn(folder).flatMap((file) => {
    const path = join(folder, file);
    // A link to a folder is not followed: it may lead back here.
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
      return file === 'node_modules' || file.startsWith('.') ? [] : modulesIn(path);
    const isModule = /\.(?:mjs|cjs|js|mts|ts|json)$/.test(file);
    return isModule && statSync(path, { throwIfNoEntry: false })?.isFile() === true ? [path] : [];
  });

/** The files of a folder that declare operations. Files that begin with a small letter are what these files share. */
function filesIn(folder: string, from: From): DeclaredFile[] {
  return namesIn(folder).flatMap((file) => {
    const name = MODULE.exec(file)?.[1];
    return name === undefined || !/^[A-Z]/.test(name) || file.endsWith('.d.ts')
      ? []
      : [{ name, path: join(folder, file), from }];
  });
}

/** The files of the catalogue and of the user's folder, in the order of their names. */
function declaredFiles(folder?: string): DeclaredFile[] {
  const own = folder === undefined ? [] : filesIn(folder, 'folder');
  const all = [...filesIn(CATALOGUE, 'catalogue'), ...own];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The file that declares an operation, by its name in upper or lower case. The user's own comes before the catalogue. */
export function findDeclared(name: string, folder?: string): DeclaredFile | undefined {
  return declaredFiles(folder).findLast((file) => file.name.toLowerCase() === name.toLowerCase());
}

let canResolve = false;

/** Makes `eod-pipeline/operations` known to modules outside this package, which need not have it installed. */
function letModulesImport(): void {
  if (canResolve) return;
  canResolve = true;
  const own = pathToFileURL(join(OWN, `public${extname(import.meta.filename)}`)).href;
  const hook = `export const resolve = (specifier, context, next) =>
    specifier === 'eod-pipeline/operations' ? { url: ${JSON.stringify(own)}, shortCircuit: true } : next(specifier, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

/** The tables that exist already, by name, each with the data set that declares it. */
type TakenTables = Map<string, { readonly table: TableDefinition; readonly by: string }>;

export const tablesTakenBy = (dataSets: readonly DataSet[]): TakenTables =>
  new Map(
    dataSets.flatMap((one) => tablesFilledBy(one).map((table) => [table.name, { table, by: one.name }])),
  );

/** What a file declares: an operation unless one of the problems is an error. */
interface ReadDeclaration {
  readonly operation: Operation | null;
  readonly problems: readonly DeclarationProblem[];
}

/**
 * Imports a file and checks what it declares; never throws for what is in the file. A file of the catalogue is only checked
 * with `names`: our tests do so, and its sample need not be read in every process that uses it.
 *
 * @param taken the tables that it cannot have; those of the operation are added.
 * @param names of all operations, if the rows of others that it is about are to be checked.
 */
export async function readDeclared(
  { name, path, from }: DeclaredFile,
  taken: TakenTables,
  names?: readonly string[],
): Promise<ReadDeclaration> {
  const file = from === 'folder' ? path : basename(path);
  const refuse = (problem: string): ReadDeclaration => ({
    operation: null,
    problems: [{ level: 'error', text: `${file}: ${problem}` }],
  });
  const unusable = from === 'folder' ? fileProblem(path, name) : null;
  if (unusable !== null) return refuse(unusable);
  if (from === 'folder') letModulesImport();
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    return refuse(importProblem(path, error));
  }
  if (module.default instanceof Promise)
    return refuse('its default export is a promise: export what defineOperation({…}) returns, without async');
  const isTested = from === 'catalogue' && names === undefined;
  // Not until there is something to check: zod takes a while to load.
  const checks = isTested ? null : await import('./check-declaration.ts');
  const options = { file, ...(names === undefined ? {} : { names }) };
  const problems = checks?.checkDeclaration(module.default, options) ?? [];
  if (problems.some(({ level }) => level === 'error')) return { operation: null, problems };
  const operation = module.default as Operation;
  if (operation.name !== name) {
    return refuse(`it declares ${operation.name}: name the file ${operation.name}${extname(file)}`);
  }
  const filled = tablesFilledBy(operation);
  for (const table of filled) {
    const other = taken.get(table.name);
    if (other !== undefined && other.table !== table) {
      return refuse(`its table ${table.name} is one of ${other.by}: give it another name`);
    }
  }
  for (const table of filled) taken.set(table.name, { table, by: name });
  if (from === 'folder' && checks !== null) nameFailures(operation, path, checks.returnedProblem);
  return { operation, problems };
}

/** Why a file of the user declares nothing, whatever is in it; null if it may. */
function fileProblem(path: string, name: string): string | null {
  const isNamed = (one: DeclaredFile) => one.name.toLowerCase() === name.toLowerCase();
  const same = filesIn(dirname(path), 'folder').filter(isNamed);
  if (same.length > 1)
    return `${same.map((one) => basename(one.path)).join(' and ')} declare the same operation: delete all but one`;
  if (filesIn(OWN, 'default').some(isNamed))
    return `${name} comes with eod and cannot be declared again: delete the file`;
  const entry = statSync(path, { throwIfNoEntry: false });
  if (entry === undefined) return 'it is a link to a file that does not exist';
  return entry.isFile() ? null : 'it is not a file';
}

/** Why a file cannot be imported, with the line where Node shows it. */
function importProblem(path: string, error: unknown): string {
  if (/\.m?ts$/.test(path) && (error as { code?: unknown }).code === 'ERR_UNKNOWN_FILE_EXTENSION')
    return `Node ${process.versions.node} does not read TypeScript: use Node 22.18 or newer, or a file .mjs with "// @ts-check"`;
  // Of what cannot be parsed, the error itself does not say where it is.
  const trace =
    error instanceof SyntaxError
      ? spawnSync(process.execPath, ['-c', path], { encoding: 'utf8' }).stderr
      : String((error as Error).stack);
  const line = trace.split(`${basename(path)}:`)[1]?.match(/^\d+/)?.[0];
  return `it cannot be imported${line === undefined ? '' : ` (line ${line})`}: ${messageOf(error)}`;
}

/** A file from which no operation can be taken, and the sentences that say why. */
export interface BrokenFile {
  readonly name: string;
  readonly problem: string;
}

/** The operation that a file declares, or why there is none. */
export async function importDeclared(
  file: DeclaredFile,
  taken: TakenTables,
): Promise<Operation | BrokenFile> {
  const { operation, problems } = await readDeclared(file, taken);
  if (operation !== null) return operation;
  const errors = problems.filter(({ level }) => level === 'error');
  return { name: file.name, problem: errors.map(({ text }) => text).join('\n') };
}

export const isBroken = (found: Operation | BrokenFile): found is BrokenFile => 'problem' in found;

/** Operations with the files that declare none, because one of these must not stop the others. */
export interface DeclaredOperations {
  readonly operations: readonly Declared[];
  readonly broken: readonly BrokenFile[];
  /** The data sets that only files of the user's formats fill. */
  readonly fileSets: readonly DataSet[];
}

/** Imports every operation of the catalogue and of the user's folder; see `readDeclared` for `taken`. */
export async function loadDeclared(
  folder: string | undefined,
  taken: TakenTables,
): Promise<Omit<DeclaredOperations, 'fileSets'>> {
  const files = declaredFiles(folder);
  const names = files.map(({ name }) => name);
  const operations: Declared[] = [];
  const broken: BrokenFile[] = [];
  for (const [position, file] of files.entries()) {
    // The user's own replaces that of the catalogue.
    if (names.indexOf(file.name, position + 1) !== -1) continue;
    const found = await importDeclared(file, taken);
    if (isBroken(found)) broken.push(found);
    else operations.push({ operation: found, from: file.from });
  }
  return { operations, broken };
}

/** The formats of files that a folder declares, with the data sets that only they fill. */
interface DeclaredFormats {
  readonly formats: readonly FileFormat[];
  readonly dataSets: readonly DataSet[];
  readonly broken: readonly BrokenFile[];
}

/** The folder with formats of files in the folder of the user. */
export const FORMATS_FOLDER = 'files';

/** Imports a module and checks the formats that it declares; never throws for what is in it. */
export async function readFormats(path: string): Promise<readonly FileFormat[] | BrokenFile> {
  letModulesImport();
  const refuse = (problem: string): BrokenFile => ({ name: basename(path), problem: `${path}: ${problem}` });
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    return refuse(importProblem(path, error));
  }
  const declared = [module.default].flat();
  const [problem] = declared.flatMap(formatProblems);
  return problem === undefined ? (declared as FileFormat[]) : refuse(problem);
}

/** Imports every module with formats in the user's folder; see `readDeclared` for `taken`. */
export async function loadFormats(folder: string | undefined, taken: TakenTables): Promise<DeclaredFormats> {
  const own = folder === undefined ? '' : join(folder, FORMATS_FOLDER);
  const formats: FileFormat[] = [];
  const dataSets: DataSet[] = [];
  const broken: BrokenFile[] = [];
  for (const file of own === ''
    ? []
    : namesIn(own).filter((name) => /^[\w-]+\.(?:mjs|js|mts|ts)$/.test(name))) {
    const path = join(own, file);
    const read = await readFormats(path);
    const sets = 'problem' in read ? [] : read.flatMap(({ declares }) => declares ?? []);
    const filled = sets.flatMap((set) => tablesFilledBy(set).map((table) => ({ table, by: set.name })));
    const other = filled.find(({ table }) => (taken.get(table.name)?.table ?? table) !== table);
    if ('problem' in read) broken.push(read);
    else if (other !== undefined) {
      const problem = `${path}: its table ${other.table.name} is one of ${taken.get(other.table.name)?.by}: give it another name`;
      broken.push({ name: file, problem });
    } else {
      for (const one of filled) taken.set(one.table.name, one);
      for (const format of read) formats.push(format);
      for (const set of sets) dataSets.push(set);
    }
  }
  return { formats, dataSets, broken };
}

/** A function of a declaration has failed. The message names operation, file and function. */
export class DeclarationError extends PipelineError {}

/**
 * Makes the functions of a declaration fail with a `DeclarationError`, whatever they throw, and if the requests of a
 * day are none.
 *
 * @param returnedProblem says what is wrong with what `windows.requests` has returned; null if nothing is.
 */
function nameFailures(
  operation: Operation,
  file: string,
  returnedProblem: (per: Operation['windows']['per'], found: unknown) => string | null,
): void {
  const failed = (path: string, problem: string, cause?: unknown) =>
    new DeclarationError(`${path} of ${operation.name} ${problem}, see ${file}`, { kind: 'usage', cause });
  const name = (
    owner: object,
    member: string,
    path: string,
    problemOf: (found: unknown) => string | null = () => null,
  ) => {
    const own: unknown = Reflect.get(owner, member);
    if (typeof own !== 'function' || named.has(own)) return;
    const calling = (...values: unknown[]): unknown => {
      let found: unknown;
      try {
        found = Reflect.apply(own, owner, values);
      } catch (error) {
        throw failed(path, `fails (${messageOf(error).slice(0, 200)})`, error);
      }
      const problem = problemOf(found);
      if (problem !== null) throw failed(path, problem);
      return found;
    };
    named.add(calling);
    Reflect.set(owner, member, calling);
  };
  name(operation.request, 'datedWhen', 'request.datedWhen');
  const { windows } = operation;
  name(windows, 'requests', 'windows.requests', (found) => returnedProblem(windows.per, found));
  for (const [at, shape] of operation.shapes.entries())
    name(shape, 'contradiction', `shapes[${at}].contradiction`);
  const tables = tablesFilledBy(operation).map(({ name, fields }) => ({ path: name, fields }));
  const also = operation.also === undefined ? [] : [{ path: 'also', fields: operation.also.fields }];
  for (const { path, fields } of [...tables, ...also]) {
    for (const field of fields) {
      for (const member of ['value', 'compute']) name(field, member, `${member} of ${path}.${field.column}`);
    }
  }
}
