import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CODE } from '../../core/package-folders.ts';
import type { FileFormat } from '../../operations/file-format.ts';

/** Those of the catalogue are beside its operations, which a database need not have enabled. */
const FOLDERS = [join(CODE, 'extract', 'files', 'formats'), join(CODE, 'operations', 'catalogue', 'files')];

/** The formats that a module declares, one or several. */
async function declaredIn(path: string): Promise<readonly FileFormat[]> {
  const module = (await import(pathToFileURL(path).href)) as {
    default: FileFormat | readonly FileFormat[];
  };
  return [module.default].flat();
}

/** The formats that come with eod. */
export const FORMATS: readonly FileFormat[] = (
  await Promise.all(
    FOLDERS.flatMap((folder) =>
      readdirSync(folder)
        .filter((file) => /^[\w-]+\.(ts|js)$/.test(file))
        .sort()
        .map((file) => declaredIn(join(folder, file))),
    ),
  )
).flat();

/** A name of which only letters and digits count. */
const bare = (name: string) => name.toLowerCase().replace(/[^a-z0-9]+/g, '');

/**
 * Finds the names of a header as they are spelled there: in any case, and if no name is so, with other spaces and marks.
 */
export function namesOf(header: readonly string[]): (column: string) => string | undefined {
  const spelled = (name: string) => name.trim().replace(/\s+/g, ' ').toUpperCase();
  // Of a repeated name, the first column is read.
  const byName = new Map(header.map((name) => [spelled(name), name] as const).reverse());
  const byBareName = new Map(header.map((name) => [bare(name), name] as const).reverse());
  return (column) => byName.get(spelled(column)) ?? byBareName.get(bare(column));
}

/** The format that a header belongs to, of several the one that is recognized by most; undefined if it is of none. */
export function formatOf(header: readonly string[], fileName: string): FileFormat | undefined {
  const own = namesOf(header);
  const inName = fileName.toLowerCase();
  const isOf = ({ marks, named }: FileFormat) =>
    marks.every((mark) => own(mark) !== undefined) && (named === undefined || inName.includes(named));
  const telling = ({ marks, named }: FileFormat) => marks.length + (named === undefined ? 0 : 1);
  return FORMATS.filter(isOf).sort((a, b) => telling(b) - telling(a))[0];
}
