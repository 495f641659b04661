import { readdirSync } from 'node:fs';
import { register } from 'node:module';
import { basename, extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, usageError } from '../core/errors.ts';
import { checkDeclaration } from './check-declaration.ts';
import { type Operation, tablesFilledBy } from './operation.ts';
import type { TableDefinition } from './table.ts';

/** Where an operation is declared: here, and asked from the start; in the catalogue; or in the user's folder. */
type From = 'default' | 'catalogue' | 'folder';

export interface Declared {
  readonly operation: Operation;
  readonly from: From;
}

/** A file that declares an operation, which has the name of the file. */
interface DeclaredFile {
  readonly name: string;
  readonly path: string;
  readonly from: From;
}

const CATALOGUE = join(import.meta.dirname, 'catalogue');

/** TypeScript is read by Node from 22.18 and 23.6 on. */
const MODULE = /^([A-Za-z]\w*)\.(?:mjs|js|mts|ts)$/;

/**
 * The files of a folder that declare operations, by name; none if there is no such folder. Files that begin with a small
 * letter are what these files share.
 */
function filesIn(folder: string, from: From): DeclaredFile[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw usageError(`EOD_OPERATIONS_DIR: ${folder} cannot be read: ${messageOf(error)}`);
  }
  return names.sort().flatMap((file) => {
    const name = MODULE.exec(file)?.[1];
    return name === undefined || !/^[A-Z]/.test(name) || file.endsWith('.d.ts')
      ? []
      : [{ name, path: join(folder, file), from }];
  });
}

/** The files of the catalogue and of the user's folder, in the order of their names. */
export function declaredFiles(folder?: string): DeclaredFile[] {
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
  const own = new URL(`./public${extname(import.meta.filename)}`, import.meta.url).href;
  const hook = `export const resolve = (specifier, context, next) =>
    specifier === 'eod-pipeline/operations' ? { url: ${JSON.stringify(own)}, shortCircuit: true } : next(specifier, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

/**
 * Imports a file and checks what it declares.
 *
 * @param taken tables that exist already, by name; tables of the operation are added.
 * @throws PipelineError `usage` with the file, the field and what to do.
 */
export async function importDeclared(
  { name, path, from }: DeclaredFile,
  taken: Map<string, TableDefinition>,
): Promise<Operation> {
  const file = from === 'folder' ? path : basename(path);
  const refuse = (problem: string) => usageError(`${file}: ${problem}`);
  if (from === 'folder') letModulesImport();
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    const isTypeScript =
      /\.m?ts$/.test(file) && (error as { code?: unknown }).code === 'ERR_UNKNOWN_FILE_EXTENSION';
    throw refuse(
      isTypeScript
        ? `Node ${process.versions.node} does not read TypeScript: use Node 22.18 or newer, or a file .mjs with "// @ts-check"`
        : `it cannot be imported: ${messageOf(error)}`,
    );
  }
  const errors = checkDeclaration(module.default, { file }).filter(({ level }) => level === 'error');
  if (errors.length > 0) throw usageError(errors.map(({ text }) => text).join('\n'));
  const operation = module.default as Operation;
  if (operation.name !== name) {
    throw refuse(`it declares ${operation.name}: name the file ${operation.name}${extname(file)}`);
  }
  for (const table of tablesFilledBy(operation)) {
    const other = taken.get(table.name);
    if (other !== undefined && other !== table) {
      throw refuse(`its table ${table.name} is one of another operation: give it another name`);
    }
    taken.set(table.name, table);
  }
  return operation;
}

/** Imports every operation of the catalogue and of the user's folder. */
export async function loadDeclared(
  folder: string | undefined,
  tables: readonly TableDefinition[],
): Promise<Declared[]> {
  const taken = new Map(tables.map((table) => [table.name, table]));
  const files = declaredFiles(folder);
  const names = files.map(({ name }) => name);
  const loaded: Declared[] = [];
  for (const [place, file] of files.entries()) {
    // The user's own replaces that of the catalogue.
    if (names.indexOf(file.name, place + 1) !== -1) continue;
    loaded.push({ operation: await importDeclared(file, taken), from: file.from });
  }
  return loaded;
}
